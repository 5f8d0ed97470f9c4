"""Faults of released packages that `docs/findings.md` tells of, each with the script that it names."""

from pathlib import Path

import pytest

from tests.jobs import ROOT, run

HERE = Path(__file__).resolve().parent


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_replicate_trains_nothing_of_a_model_that_is_cut(tmp_path: Path) -> None:
    script = HERE / "replicate_over_tensor_parallel.py"
    found = run(["specs/essentials"], script, tmp_path / "report.json")
    assert found.steps("optimizers_hold_parameters_of_a_model") == [2]
    assert str(script.relative_to(ROOT)) in (ROOT / "docs" / "findings.md").read_text()
