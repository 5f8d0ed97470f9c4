"""Faults of released packages that `docs/findings.md` tells of, each with the script or the command that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.first_found import Found, first_found, matches
from tests.jobs import ROOT, done, run

HERE = Path(__file__).resolve().parent
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
COMPARED = re.findall(r"`python -m (\S+) --verbose (\S+)`: `([^`]+)` is the first finding", PAGE)
"""Module, job, and the first tensor that is wrong against one device."""


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_replicate_trains_nothing_of_a_model_that_is_cut(tmp_path: Path) -> None:
    script = HERE / "replicate_over_tensor_parallel.py"
    found = run(["specs/essentials"], script, tmp_path / "report.json")
    assert found.steps("optimizers_hold_parameters_of_a_model") == [2]
    assert str(script.relative_to(ROOT)) in PAGE


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_an_output_that_uses_the_embeddings_has_a_weight_that_nothing_uses(tmp_path: Path) -> None:
    command = "specs/essentials specs/megatron -- tests/megatron/train.py pp=2,mtp=1,rope,steps=25"
    specs, script = (part.split() for part in command.split(" -- "))
    found = first_found(specs, script, tmp_path / "report.json")
    expected = Found("gradients_are_not_all_zero", 20, (1,), "output_layer.weight")
    assert matches(found, expected), found
    assert f"`tspec run {command}`" in PAGE


def test_three_findings_are_compared_with_one_device() -> None:
    assert [job for _, job, _ in COMPARED] == [
        "tp=2,clipped,sink",
        "tp=2,sp,experts=4,kv=2,swiglu,rms,rope,untied",
        "cp=2,masked",
    ]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(("module", "job", "first"), COMPARED, ids=[job for _, job, _ in COMPARED])
def test_a_comparison_with_one_device_finds_first_what_the_page_says(
    module: str, job: str, first: str
) -> None:
    ended = done("-m", module, "--verbose", job)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    [row] = [line for line in ended.stdout.splitlines() if line.startswith(f"| `{job}` |")]
    assert f"first `{first}`" in row
    if first.startswith("param_grads"):
        assert f"  {first}, step 1: replicas on ranks 0, 1 differ by " in ended.stderr
        assert "the sum of the replicas is the reference" in ended.stderr
        assert "  gradient_norms norm, step 1: " in ended.stderr
    else:
        assert "  states " in ended.stderr
