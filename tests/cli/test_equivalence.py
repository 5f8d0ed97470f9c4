"""`tspec run --equivalence`: what cannot be run ends with status 2 and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tspec.cli.app import app

SPEC = """edition 2026

module checks

mesh ranks {
  order: tp
  tp: 1
}

dims ranks {
  hidden: 4
}

layout whole on ranks replicated tp {
  param "weight": [hidden, hidden]
}

equivalence agrees {
  layout whole
  reference { tp: 1 }
  candidate { tp: 1 }
  run 1 step
  compare params
  within 0
}

equivalence swept {
  layout whole
  reference { tp: 1 }
  sweep seed in [1, 2]
  sweep tp in [1]
  run 1 step
  compare params
  within 0
}
"""


def run(folder: Path, *arguments: str, script: str = "") -> Result:
    (folder / "checks.tspec").write_text(SPEC)
    (folder / "job.py").write_text(script)
    words = ["run", str(folder / "checks.tspec"), *arguments, "--", str(folder / "job.py")]
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--equivalence", "agree"), "did you mean `agrees`?"),
        (("--equivalence", "swept"), "write `{seed}` in one of its arguments"),
        (("--equivalence", "agrees", "--fail-on", "never"), "it is about rules, not about an"),
        (("--equivalence", "agrees", "--given", "tp=2"), "it is about rules, not about an"),
        (("--equivalence", "agrees", "--drill"), "`agrees` keeps all tensors: it is for"),
        (("--drill",), "it is about an equivalence: add --equivalence"),
        (("--stall-timeout", "9"), "it is about an equivalence: add --equivalence"),
        (("--dropout", "off"), "it is about an equivalence: add --equivalence"),
    ],
)
def test_what_cannot_be_run_says_why(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    found = run(tmp_path, *arguments)
    assert found.exit_code == 2
    assert says in " ".join(found.stderr.split())


def test_a_folder_that_holds_something_is_not_recorded_into(tmp_path: Path) -> None:
    found = run(tmp_path, "--equivalence", "agrees", "--record", str(tmp_path))
    assert found.exit_code == 2
    assert "is there already" in found.stderr


def test_a_side_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    found = run(tmp_path, "--equivalence", "agrees", script="raise ValueError('no data')")
    assert found.exit_code == 2
    assert found.stderr.startswith("tspec: the run `reference` ended with status 1\nTraceback")
    assert "\nValueError: no data\n" in found.stderr


@pytest.mark.slow
def test_a_configuration_that_fails_ends_its_own_comparison_only(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    (tmp_path / "checks.tspec").write_text(SPEC)
    script.write_text(
        "import sys, torch\n"
        "assert sys.argv[1] == '1'\n"
        "model = torch.nn.Linear(4, 4, bias=False)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(2, 4)).sum().backward()\n"
        "optimizer.step()\n"
    )
    words = ["run", str(tmp_path / "checks.tspec"), "--equivalence", "swept"]
    found = CliRunner().invoke(app, [*words, "--", str(script), "{seed}"])
    assert found.exit_code == 2
    assert "tspec: the run `reference` ended with status 1\nTraceback" in found.stderr
    assert found.stdout == (
        "checks.swept[seed: 1, tp: 1]: 2 tensors compared, none differs\n"
        "\n"
        "checks.swept: 2 configurations compared, none differs, 1 failed\n"
        "\n"
        "seed  tp  reference  verdict  tensors  first wrong\n"
        "1     1              agrees   2\n"
        "2     1              failed            the run `reference` ended with status 1\n"
    )


@pytest.mark.slow
def test_a_script_that_trains_nothing_has_nothing_to_compare(tmp_path: Path) -> None:
    found = run(tmp_path, "--equivalence", "agrees", script="import torch")
    assert found.exit_code == 2
    assert "nothing was compared" in found.stderr


@pytest.mark.slow
def test_a_script_agrees_with_itself(tmp_path: Path) -> None:
    """One rank on both sides, in processes of their own, and nothing is left of them."""
    script = tmp_path / "job.py"
    (tmp_path / "checks.tspec").write_text(SPEC)
    script.write_text(
        "import torch\n"
        "model = torch.nn.Linear(4, 4, bias=False)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(2, 4)).sum().backward()\n"
        "optimizer.step()\n"
    )
    (tmp_path / "tmp").mkdir()
    # torch itself leaves a cache of compiled kernels in the temporary folder.
    folders = {"TMPDIR": tmp_path / "tmp", "TORCHINDUCTOR_CACHE_DIR": tmp_path / "kernels"}
    words = ("run", "checks.tspec", "--equivalence", "checks.agrees", "--", "job.py")
    done = subprocess.run(
        [sys.executable, "-m", "tspec", *words],
        cwd=tmp_path,
        env=os.environ | {name: str(folder) for name, folder in folders.items()},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "checks.agrees: 2 tensors compared, none differs\n"
    assert list((tmp_path / "tmp").iterdir()) == []
