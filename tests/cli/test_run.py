"""`tspec run`: a script with rules in it; its own status, findings, and the report of a crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.cli.recordings import CLEARED
from tspec.cli.run import faults

SCRIPT = """\
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    if "--forget" not in sys.argv:
        optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
    loss.backward()
    optimizer.step()
print("trained")
if "--leave" in sys.argv:
    sys.exit(7)
if "--crash" in sys.argv:
    raise RuntimeError("out of luck")
"""

RULES = (
    """\
edition 2026

module checks

use std.torch

"""
    + CLEARED
)

BEFORE_UPDATE = """\
edition 2026

module checks

use std.torch

/// An update is made of cleared gradients.
invariant gradients_are_cleared {
  before optimizer.step
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "checks.tspec").write_text(RULES)
    return tmp_path


def tspec(job: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run(*arguments, cwd=job)


def anew(job: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in an interpreter of its own: how the script ends is tested."""
    return subprocess.run(
        [sys.executable, "-m", "tspec", *arguments],
        cwd=job,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_sound_run_finds_nothing(job: Path) -> None:
    result = tspec(job, "run", "checks.tspec", "--", "train.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("trained\nnothing found\n")
    assert "1 rule: 0 violated, 1 held" in result.stdout


def test_warnings_keep_the_status_of_the_script(job: Path) -> None:
    result = tspec(job, "run", "checks.tspec", "--report", "r.json", "--", "train.py", "--forget")
    assert result.returncode == 0, result.stderr
    assert "warning: checks.gradients_are_cleared" in result.stdout
    [finding] = json.loads((job / "r.json").read_text())
    assert finding["rule"] == "checks.gradients_are_cleared"
    assert (finding["file"], finding["line"]) == ("checks.tspec", 8)
    assert (finding["step"], finding["rank"], finding["violated"]) == (2, 0, 4)


STOPS = ("--rule", "checks.gradients_are_cleared=stop")
DRAFT = RULES.replace("invariant", "draft invariant").replace("else warn", "else stop")


@pytest.mark.parametrize(
    ("options", "configured", "rules", "status"),
    [
        (("--fail-on", "warning"), "", RULES, 1),
        ((), "warning", RULES, 1),
        (("--fail-on", "error"), "warning", RULES, 0),
        (("--fail-on", "warning"), "", DRAFT, 1),
        ((), "", DRAFT, 0),
        (STOPS, "", RULES, 1),
        ((*STOPS, "--fail-on", "never"), "", RULES, 1),
        (("--rule", "checks.gradients_are_cleared=skip"), "", BEFORE_UPDATE, 1),
        (("--rule", "checks.gradients_are_cleared=skip"), "never", BEFORE_UPDATE, 0),
    ],
    ids=str,
)
def test_what_findings_exit_with_is_said_by_fail_on(
    job: Path, options: tuple[str, ...], configured: str, rules: str, status: int
) -> None:
    (job / "checks.tspec").write_text(rules)
    if configured:
        (job / "tspec.toml").write_text(f'[run]\nfail-on = "{configured}"\n')
    result = tspec(job, "run", "checks.tspec", *options, "--", "train.py", "--forget")
    assert result.returncode == status, result.stderr
    assert "1 rule: 1 violated" in result.stdout


def test_a_configuration_of_no_severity_is_refused(job: Path) -> None:
    (job / "tspec.toml").write_text('[run]\nfail-on = "warn"\n')
    result = tspec(job, "run", "checks.tspec", "--", "train.py")
    assert result.returncode == 2
    assert "there is no severity `warn`" in result.stderr
    assert "did you mean `warning`?" in result.stderr


@pytest.mark.parametrize(
    ("options", "configured", "status"),
    [
        ((), "", 0),
        (("--require-instances",), "", 1),
        ((), "require-instances = true", 1),
        (("--allow-no-instances",), "require-instances = true", 0),
    ],
    ids=str,
)
def test_a_script_without_training_is_no_sound_run(
    job: Path, options: tuple[str, ...], configured: str, status: int
) -> None:
    (job / "train.py").write_text("print('nothing to train')\n")
    (job / "tspec.toml").write_text(f"[run]\n{configured}\n")
    result = tspec(job, "run", "checks.tspec", *options, "--", "train.py")
    assert result.returncode == status, result.stderr
    assert "nothing was checked: no rule had an instance\n1 rule: 0 violated" in result.stdout
    said = "tspec: no rule had an instance, and --require-instances asks for one" in result.stderr
    assert said == bool(status)


def test_a_script_without_training_has_idle_instances_of_rules_on_the_run(job: Path) -> None:
    (job / "train.py").write_text("print('nothing to train')\n")
    result = tspec(job, "run", "specs/essentials", "--require-instances", "--", "train.py")
    assert result.returncode == 1, result.stderr
    assert "nothing was checked: all instances are idle\n" in result.stdout
    assert "tspec: all instances are idle, and --require-instances asks" in result.stderr


def test_a_run_with_instances_meets_require_instances(job: Path) -> None:
    result = tspec(job, "run", "checks.tspec", "--require-instances", "--", "train.py")
    assert result.returncode == 0, result.stderr


SILENT = """\
edition 2026

module checks

use std.torch

invariant loss_stays_below_that_of_the_run_before { each run  expect loss < previous(loss) }
invariant replicas_are_equal { for p in parameters across dp each step expect same(p.data) }
invariant plateaus_are_stepped { before scheduler.step expect loss < 1 }
"""


def silent(said: str) -> list[str]:
    """The lines of a report about rules that decided nothing."""
    lines = said.splitlines()
    return lines[next(n for n, line in enumerate(lines) if " vacuous " in line) :]


def test_a_run_says_why_rules_decided_nothing_as_a_check_does(job: Path) -> None:
    (job / "checks.tspec").write_text(SILENT)
    ran = tspec(job, "run", "checks.tspec", "--record", "trace", "--", "train.py")
    assert ran.returncode == 0, ran.stderr
    assert silent(ran.stdout) == [
        "1 vacuous (each instance idle, so nothing was tested):",
        "  replicas_are_equal (no group dp)",
        "1 blind (what they read was not there, or had no earlier value):",
        "  loss_stays_below_that_of_the_run_before (no history yet)",
        "1 without an instance (nothing in the job that they apply to):",
        "  plateaus_are_stepped",
    ]
    checked = tspec(job, "check", "checks.tspec", "--trace", "trace")
    assert silent(checked.stdout) == silent(ran.stdout)


@pytest.mark.parametrize(
    ("options", "configured"),
    [(("--check-steps", "1/1000"), ""), ((), 'check-steps = "1/1000"')],
    ids=["option", "configuration"],
)
def test_a_run_that_checks_some_steps_says_so(
    job: Path, options: tuple[str, ...], configured: str
) -> None:
    (job / "tspec.toml").write_text(f"[run]\n{configured}\n")
    result = tspec(job, "run", "checks.tspec", *options, "--", "train.py")
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert said.endswith(
        "note: rules were checked in the first 100 steps and then in 1 of each 1000:"
        " other steps may violate them"
    )


@pytest.mark.parametrize(
    ("options", "configured"),
    [(("--check-steps", "6/5"), ""), ((), 'check-steps = "6/5"')],
    ids=["option", "configuration"],
)
def test_more_steps_than_there_are_cannot_be_checked(
    job: Path, options: tuple[str, ...], configured: str
) -> None:
    (job / "tspec.toml").write_text(f"[run]\n{configured}\n")
    result = tspec(job, "run", "checks.tspec", *options, "--", "train.py")
    assert result.returncode == 2
    assert "6/5: at least 1 and at most 5 of 5 steps can be checked" in result.stderr


@pytest.mark.slow
def test_a_script_that_fails_keeps_its_status_and_findings_are_written(job: Path) -> None:
    leaving = anew(
        job, "run", "checks.tspec", "--report", "l.json", "--", "train.py", "--forget", "--leave"
    )
    assert leaving.returncode == 7, leaving.stderr
    assert len(json.loads((job / "l.json").read_text())) == 1
    crash = anew(job, "run", "checks.tspec", "--report", "c.json", "--", "train.py", "--crash")
    assert crash.returncode == 1
    assert "RuntimeError: out of luck" in crash.stderr
    assert "tspec/" not in crash.stderr.replace(str(job), "")
    assert json.loads((job / "c.json").read_text()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["checks.tspec"], "the script is missing"),
        (["checks.tspec", "--", "nowhere.py"], "there is no script nowhere.py"),
        (["checks.tspec", "--", "torchrun", "job.py"], "`torchrun OPTIONS -m tspec run"),
        (["--", "train.py"], "SPECS"),
        (["checks.tspec", "--given", "tp", "--", "train.py"], "no NAME=VALUE"),
        (["nowhere.tspec", "--", "train.py"], "nowhere.tspec"),
    ],
)
def test_a_wrong_call_exits_with_two(job: Path, arguments: list[str], said: str) -> None:
    result = tspec(job, "run", *arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_faults_that_ranks_share_are_one() -> None:
    assert faults(["rank 0: internal error", "rank 1: internal error", "rank 1: other"]) == (
        "internal error [ranks 0, 1]",
        "other [rank 1]",
    )
