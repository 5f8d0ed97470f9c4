"""Runs megatron-core against one device, clean and with faults in it, and prints a table of what is found.

    python -m tests.equivalence.megatron_table > docs/megatron_equivalence.md

With names of faults, or `clean`, runs these alone. The status is 1 if one is not found as this says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.equivalence.forked import forked
from tests.megatron.cpu import run_on_cpu
from tspec.equivalence.check import (
    Launch,
    Outcome,
    ReferenceRecordings,
    compare,
    run_candidate,
    run_reference,
)
from tspec.equivalence.launch import launch
from tspec.equivalence.localize import Localization, localize
from tspec.equivalence.sides import Trial, trial_of
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
TRAIN = HERE.parent / "megatron/train.py"

HEAD = """# Megatron against one device

Each row is a job of the real megatron-core 0.16.1 on CPU, compared with the same model on one rank by
[tests/equivalence/megatron.tspec](../tests/equivalence/megatron.tspec), clean or with one of the faults of
`tests/megatron/bugs` in it. Modules are those that are wrong by themselves, with the reference's inputs and gradients. Printed by:

    python -m tests.equivalence.megatron_table > docs/megatron_equivalence.md

| fault | job | first wrong | wrong by itself, the worst first |
| --- | --- | --- | --- |"""


@dataclass(frozen=True, slots=True)
class Case:
    """A job, and what is to be found: the first wrong tensor and the worst module; empty: nothing."""

    equivalence: str
    options: str = ""
    fault: str = ""
    first: str = ""
    module: str = ""
    spec: str = "megatron"

    @property
    def job(self) -> str:
        """The equivalence and the options of the job."""
        return " ".join(filter(None, (self.equivalence, self.options.replace(",", " "))))


EXPERTS = "experts=4,etp={etp}"
CASES = (
    *(
        Case(name, options)
        for options in ("", "bf16")
        for name in (
            *("tensor_parallel", "sequence_parallel", "pipeline"),
            *("data_parallel", "all_axes"),
        )
    ),
    Case("data_parallel", "zero"),
    Case("data_parallel", "zero,bf16"),
    Case("experts", EXPERTS, spec="megatron_experts"),
    Case(
        "experts",
        EXPERTS,
        "auxiliary_loss_scaled_by_ranks",
        "output_grads decoder.layers.3.pre_mlp_layernorm",
        "decoder.layers.3.mlp.router",
        "megatron_experts",
    ),
    *(
        Case(
            "tensor_parallel",
            options,
            "embedding_mask_not_applied",
            "outputs embedding.word_embeddings",
            "embedding.word_embeddings",
        )
        for options in ("", "bf16")
    ),
    *(
        Case(
            "data_parallel",
            options,
            "gradients_summed_over_data",
            "param_grads embedding.word_embeddings.weight",
            "all parameters",
        )
        for options in ("", "bf16")
    ),
    Case(
        "tensor_parallel",
        "",
        "output_not_summed",
        "outputs embedding.word_embeddings",
        "embedding.word_embeddings",
    ),
    Case(
        "tensor_parallel",
        "bf16",
        "output_not_summed",
        "outputs embedding.word_embeddings",
        "decoder.layers.3.self_attention.linear_proj",
    ),
    Case(
        "tensor_parallel",
        "",
        "input_gradient_not_summed",
        "output_grads decoder.final_layernorm",
        "output_layer",
    ),
    Case(
        "tensor_parallel",
        "bf16",
        "input_gradient_not_summed",
        "output_grads decoder.final_layernorm",
        "decoder.layers.2.mlp.linear_fc1",
    ),
    *(
        Case(
            "sequence_parallel",
            options,
            "final_norm_not_marked",
            "param_grads decoder.final_layernorm.weight",
            "decoder.final_layernorm",
        )
        for options in ("", "bf16")
    ),
    Case(
        "pipeline",
        "",
        "stage_begins_too_early",
        "outputs decoder.layers.2.input_layernorm",
        "decoder.layers.3.mlp.linear_fc2",
    ),
    Case(
        "pipeline",
        "bf16",
        "stage_begins_too_early",
        "outputs decoder.layers.2.input_layernorm",
        "decoder.layers.2.self_attention.linear_qkv",
    ),
    Case(
        "pipeline",
        "bf16",
        "model_copy_not_written",
        "params embedding.word_embeddings.weight",
        "embedding.word_embeddings",
    ),
    Case(
        "data_parallel",
        "zero,bf16",
        "parameters_not_gathered",
        "params embedding.word_embeddings.weight",
        "embedding.word_embeddings",
    ),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found in a job."""

    outcome: Outcome
    localized: Localization | None


def trial(case: Case) -> Trial:
    """The equivalence of a case, of one step of two micro-batches."""
    program = load([HERE / f"{case.spec}.tspec"]).program
    assert program is not None
    [declaration] = (each for each in program.equivalences if each.name == case.equivalence)
    layout = "tp={tp},dp={dp},pp={pp},sp={sp},passes=2,steps=1"
    job = ",".join(filter(None, (layout, case.options)))
    fault = (f"--bug={case.fault}",) if case.fault else ()
    return trial_of(declaration, (str(TRAIN), job, *fault))


def references(folder: Path, start: Launch = launch) -> Callable[[Case], ReferenceRecordings]:
    """The reference of a case, run once for each model; a fault is not in it."""
    found: dict[tuple[str, ...], ReferenceRecordings] = {}

    def of(case: Case) -> ReferenceRecordings:
        asked = trial(replace(case, fault=""))
        if asked.reference not in found:
            place = folder / f"reference-{len(found)}"
            place.mkdir()
            found[asked.reference] = run_reference(asked, place, start)
        return found[asked.reference]

    return of


def judged(
    case: Case, reference: ReferenceRecordings, folder: Path, start: Launch = launch
) -> Judged:
    """Run the job of a case against a reference."""
    asked = trial(case)
    candidate = run_candidate(asked, reference.recording, folder, start=start)
    outcome = compare(asked, reference, candidate)
    if not (outcome.wrong or outcome.faults):
        return Judged(outcome, None)
    return Judged(outcome, localize(asked, reference, candidate, folder, start))


def first(outcome: Outcome) -> str:
    """The first tensor that differs, or of which the pieces do not fit."""
    found = [*outcome.wrong, *outcome.faults]
    name = min(found, key=lambda each: each.order).name if found else None
    return "" if name is None else f"{name.kind} {name.name}"


def modules(found: Localization | None) -> Iterator[str]:
    """The modules that are wrong by themselves, and which part of them."""
    for each in found.suspects if found else ():
        why = "" if each.evidence.suggests == "unknown" else f" ({each.evidence.suggests})"
        yield f"`{each.module or 'the script'}`: {each.part}{why}"


def row(case: Case, found: Judged) -> str:
    """A line of the table."""
    named = list(modules(found.localized))
    more = [f"and {len(named) - 2} more"] if len(named) > 2 else []
    wrong = f"`{first(found.outcome)}`" if first(found.outcome) else "nothing"
    number = len(found.outcome.comparisons)
    said = "; ".join(named[:2] + more) or f"nothing, in {number} tensors"
    return f"| {case.fault or 'none'} | `{case.job}` | {wrong} | {said} |"


def as_said(case: Case, found: Judged) -> bool:
    """What was found is what was to be found."""
    named = found.localized.suspects if found.localized else ()
    module = named[0].module if named else ""
    return (first(found.outcome), module) == (case.first, case.module)


def main() -> None:
    asked = sys.argv[1:]
    cases = [each for each in CASES if not asked or (each.fault or "clean") in asked]
    missed = False
    run_on_cpu()  # the package is imported once, and not in each rank
    print(HEAD)
    with tempfile.TemporaryDirectory() as name:
        reference = references(Path(name), forked)
        for number, case in enumerate(cases):
            folder = Path(name, str(number))
            folder.mkdir()
            found = judged(case, reference(case), folder, forked)
            print(row(case, found), flush=True)
            if not as_said(case, found):
                missed = True
                print(f"{case} is not found so", file=sys.stderr)
    sys.exit(missed)


if __name__ == "__main__":
    main()
