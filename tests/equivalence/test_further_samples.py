"""Errors near their tolerance are judged by more perturbed runs of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.equivalence.test_blame import MODULES
from tests.equivalence.trials import trial_of
from tspec.equivalence.launch import SideRun, prepared
from tspec.equivalence.recording import Recording, TensorName, write
from tspec.equivalence.verdicts import Verdict, places, verdicts
from tspec.report.equivalences.text import text
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: dp
  dp: 2
}

dims ranks {
  hidden: 4
}

layout copies on ranks {
  output "norm": [hidden] replicated dp
}

equivalence e {
  layout copies
  reference { dp: 1 }
  candidate { dp: 2 }
  run 1 step
  compare outputs
  within 3 * noise(samples: SAMPLES)
}
"""
OUTPUT = TensorName("outputs", "norm", 1, 1)
NOISE = {"sample-1": 1e-5, "sample-2": 1e-5, "sample-3": 2e-5, "sample-4": 8e-5, "sample-5": 1e-3}
"""The relative change of the output in each perturbed run."""


def judged(error: float, samples: int, folder: Path) -> tuple[Verdict, list[str]]:
    """The verdict on a candidate whose output is off by a relative error, and the runs that were made."""
    program = load_text(TEXT.replace("SAMPLES", str(samples))).program
    assert program is not None
    made: list[str] = []

    def start(run: SideRun, folder: Path) -> Path:
        prepared(run, folder)
        made.append(run.name)
        off = NOISE.get(run.name, error if run.name == "candidate" else 0.0)
        for rank in range(run.world):
            write(
                folder / run.name, rank, Recording({OUTPUT: torch.ones(4) * (1 + off)}, {}, MODULES)
            )
        return folder / run.name

    found = places([trial_of(program.equivalences[0], ("train.py",))], folder)
    [verdict] = verdicts(found, start=start)
    return verdict, made


@pytest.mark.parametrize(
    ("error", "samples", "differs", "further"),
    [
        (2e-5, 1, False, 0),
        (1e-4, 1, False, 3),
        (1e-4, 2, False, 2),
        (2e-4, 1, True, 0),
        (3e-4, 3, True, 0),
        (2e-4, 3, False, 1),
        (3e-4, 4, True, 0),
    ],
    ids=["within", "near", "near two", "far", "far of three", "near three", "enough"],
)
def test_what_is_near_is_judged_by_four_perturbed_runs(
    error: float, samples: int, differs: bool, further: int, tmp_path: Path
) -> None:
    verdict, made = judged(error, samples, tmp_path)
    assert (verdict.differs, verdict.further) == (differs, further)
    perturbed = [each for each in made if each.startswith("sample")]
    assert perturbed == [f"sample-{each}" for each in range(1, samples + further + 1)]
    assert made.count("reference") == made.count("candidate") == 1
    said = " ".join(text(verdict, 80).split())
    assert ("errors were near their tolerances" in said) == (further > 0)


def test_what_stays_wrong_after_more_runs_is_told(tmp_path: Path) -> None:
    """The fourth perturbed run of this job moves no further than the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(NOISE, "sample-4", 1e-5)
        verdict, _ = judged(1e-4, 1, tmp_path)
    assert (verdict.differs, verdict.further) == (True, 3)
    assert "3 more perturbed runs of the reference measured the noise" in " ".join(
        text(verdict, 80).split()
    )
