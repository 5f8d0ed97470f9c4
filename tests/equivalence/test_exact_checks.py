"""Tensors that have to equal others of their rank, on both sides."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.inexact import inexact_tensors
from tspec.equivalence.observing.exact_checks import _difference
from tspec.equivalence.recording import InexactTensor, Recording, TensorName, read, write
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
WEIGHT = TensorName("params", "0.weight", 1)
SAYS = "3 of 48 elements are others"


def test_a_copy_is_the_main_parameter_rounded() -> None:
    main = torch.randn(64, generator=torch.Generator().manual_seed(0))
    rounded = main.bfloat16()
    assert _difference(rounded, main) == ""
    changed = rounded.clone()
    changed[3] = changed[3] * 1.01
    said = _difference(changed, main)
    assert said.startswith(
        "1 of 64 elements are not the float32 main parameter rounded to bfloat16"
    )


def test_what_is_not_a_number_in_both_does_not_differ() -> None:
    main = torch.tensor([1.0, float("nan"), float("inf")])
    assert _difference(main.half(), main) == ""
    assert _difference(torch.tensor([1.0, 2.0, float("inf")]).half(), main) != ""


def test_a_side_and_the_ranks_that_say_the_same_are_named_together(tmp_path: Path) -> None:
    program = load([HERE / "main_copies.tspec"]).program
    assert program is not None
    [declaration] = program.equivalences
    trial = trial_of(declaration, ["job.py"])
    inexact = InexactTensor(WEIGHT, "copy", SAYS)
    others = InexactTensor(TensorName("outputs", "0", 1, 1), "recomputed", "other numbers")
    unasked = InexactTensor(TensorName("inputs", "0", 1, 1), "recomputed", "other numbers")
    write(tmp_path, 0, Recording({WEIGHT: torch.ones(2)}, {}, inexact=frozenset({inexact})))
    reference = read(tmp_path, 0)
    assert reference.inexact == {inexact}
    clean = Recording({}, {})
    first = Recording({}, {}, inexact=frozenset({others, unasked}))
    both = Recording({}, {}, inexact=frozenset({inexact, others}))
    found = list(inexact_tensors(trial, reference, [first, both]))
    assert [(each.name, each.fault.kind, each.fault.message) for each in found] == [
        (WEIGHT, "copy", f"{SAYS}, on the reference and rank 1"),
        (others.name, "recomputed", "other numbers, on ranks 0, 1"),
    ]
    assert not list(inexact_tensors(trial, clean, [clean, clean]))
