"""What of an equivalence is run, and what is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.equivalence.trials import trial_of
from tspec.equivalence.child import Given
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.refused import NotExecuted
from tspec.equivalence.sides import Trial, trials_of
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp, ep
  tp: 2
  ep: 1
  regroup experts {
    order: eep, etp
    eep: 2
    etp: 1
  }
}

dims ranks {
  hidden: 8
}

layout cut on ranks replicated ep {
  param "*": [hidden / tp] when sequence
  param "*": [hidden / tp]
}

equivalence e {
  layout cut
  reference { tp: 1 }
  candidate { sequence: true }
  run 2 steps from generated(seed: 5)
  compare params
  within 3 * noise(perturb: ulp(bfloat16), samples: 4)
}
"""


def trial(text: str = TEXT, *command: str) -> Trial:
    program = load_text(text).program
    assert program is not None, load_text(text).diagnostics
    [declaration] = program.equivalences
    return trial_of(declaration, command or ("train.py",))


def test_an_equivalence_is_ranks_layout_arguments_and_a_tolerance() -> None:
    found = trial(TEXT, "train.py", "--tp={tp}", "--sp={sequence}", "{'a': 1}", "{other}")
    assert found.reference == ("train.py", "--tp=1", "--sp=false", "{'a': 1}", "{other}")
    assert found.candidate == ("train.py", "--tp=2", "--sp=true", "{'a': 1}", "{other}")
    assert (found.world, found.steps, found.seed, found.samples) == (2, 2, 5, 4)
    assert (found.perturb, found.kinds, found.name) == (2**-7, ("params",), "example.e")
    assert found.sizes.flags == {"sequence"}


def test_what_is_judged_alone_is_recorded() -> None:
    found = trial(TEXT.replace("4)\n", "4)\n  localize by rewriting inputs\n"))
    of_modules = ("inputs", "outputs", "input_grads", "output_grads")
    assert found.localize and not trial().localize
    assert found.recorded == ("params", "losses", "param_grads", *of_modules)


def test_a_setting_reaches_the_script_by_an_argument() -> None:
    text = TEXT.replace("candidate { sequence: true }", "candidate { dtype: bfloat16 }")
    with pytest.raises(NotExecuted, match=re.escape("write `{dtype}` in one of its arguments")):
        trial(text)
    assert trial(text, "train.py", "{dtype}").candidate == ("train.py", "bfloat16")


def test_a_recorded_reference_lies_beside_the_file() -> None:
    found = trial(TEXT.replace("generated(seed: 5)", 'recorded("runs/a")'))
    assert (found.seed, found.origin) == (None, Path.cwd() / "runs/a")


@pytest.mark.parametrize("seed", [5, None])
def test_recorded_sketches_begin_with_weights_that_are_generated_again(
    seed: int | None, tmp_path: Path
) -> None:
    Given((), Orders(1, (), seed)).write(tmp_path / "reference.json")
    text = TEXT.replace("generated(seed: 5)", f'recorded("{tmp_path}")')
    text = text.replace("4)\n", "4)\n  store: sketch\n")
    if seed is None:
        with pytest.raises(NotExecuted, match="began with the script's own weights"):
            trial(text)
    else:
        assert trial(text).seed == seed


def test_each_configuration_of_a_sweep_has_its_arguments() -> None:
    text = TEXT.replace("  run", "  sweep seed in [1, 2]\n  run")
    program = load_text(text).program
    assert program is not None
    found = trials_of(program.equivalences[0], ("train.py", "{seed}", "{tp}", "{world_size}"))
    assert [each.name for each in found] == ["example.e[seed: 1]", "example.e[seed: 2]"]
    assert [each.reference[1:] for each in found] == [("1", "1", "1"), ("2", "1", "1")]
    assert [each.candidate[1:] for each in found] == [("1", "2", "2"), ("2", "2", "2")]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("reference { tp: 1 }", "reference {}", "on one rank, or is a pipeline, and has tp: 2"),
        ("{ sequence: true }", "{ tp: 4 }", "`experts` regroups another number of ranks than 4"),
        (
            "compare params",
            "compare params, predictions",
            "`compare predictions` cannot be run yet",
        ),
        (
            "4)\n",
            "4)\n  store: sketch\n",
            "there is no recording of a reference in",
        ),
        (
            "4)\n",
            "4)\n  store: sketch\n  localize by rewriting inputs\n",
            "modules are judged alone with the reference's tensors, of which a recording with `store: sketch` keeps none",
        ),
        ("2 steps", "2 epochs", "a run of epochs cannot be run yet"),
        (
            "  run 2 steps from generated(seed: 5)",
            '  sweep seed in [1, 2]\n  run 2 steps from recorded("runs/a")',
            "one reference is recorded, and 2 are asked for",
        ),
        ("(seed: 5)", "(seed: 5, models: 2)", "`models:` cannot be run yet"),
        ("  layout cut\n", "", "it has no `layout NAME`"),
        ("  run", "  require tp > 2\n  run", "no configuration is compared with another"),
        ("sequence: true", "world_size: 4", "`world_size: 4`, and its mesh has 2 ranks"),
        ("samples: 4)", "samples: 4) + noise()", "a tolerance has one `noise`"),
    ],
)
def test_what_cannot_be_run_is_refused(before: str, after: str, message: str) -> None:
    text = TEXT.replace(before, after)
    if "store: sketch" in after:
        text = text.replace("generated(seed: 5)", 'recorded("runs/a")')
    if before == "  layout cut\n":
        text = text.replace("{ sequence: true }", "{ seed: 1 }").replace("{ tp: 1 }", "{ seed: 1 }")
    with pytest.raises(NotExecuted, match=re.escape(message)):
        trial(text, "train.py", "{seed}")
