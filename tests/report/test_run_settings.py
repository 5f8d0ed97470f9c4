"""A job in which the project's configuration decides what its rules do."""

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml

from tests import warm
from tests.report.schemas import schema

SCRIPT = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("step", step + 1)
"""
SPEC = """edition 2026

module ours

use std.hygiene with steps_have_gradients: off
"""
RULE = "std.hygiene.gradients_are_cleared"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "ours.tspec").write_text(SPEC)
    return tmp_path


def tspec(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    return warm.run(*arguments, "--", "train.py", cwd=project, env=env)


def test_a_rule_that_warns_stops_where_the_project_says_so(project: Path) -> None:
    (project / "tspec.toml").write_text(f'specs = ["ours.tspec"]\n\n[rules]\n"{RULE}" = "stop"\n')
    done = tspec(project, "run", "--report", "found.sarif")
    assert done.returncode == 1, done.stderr
    assert "step 1" in done.stdout
    assert "step 3" not in done.stdout
    assert "action: stop (set by tspec.toml:4)" in done.stdout
    assert "1 off by ours.tspec:5:\n  steps_have_gradients" in done.stdout
    log = json.loads((project / "found.sarif").read_text())
    jsonschema.Draft7Validator(schema()).validate(log)
    [found] = log["runs"][0]["results"]
    assert (found["ruleId"], found["level"], found["properties"]["step"]) == (RULE, "error", 2)


@pytest.mark.slow
def test_what_a_baseline_accepts_does_not_count(project: Path) -> None:
    asked = ("run", "ours.tspec", "--baseline", "accepted.json", "--report", "found.xml")
    assert tspec(project, *asked, "--update-baseline").returncode == 0
    again = tspec(project, *asked, "--rule", f"{RULE}=warn")
    assert again.returncode == 0, again.stderr
    assert "step 6" in again.stdout
    assert "2 findings hidden, which accepted.json accepts" in again.stderr
    cases = {case.name: case for s in JUnitXml.fromfile(str(project / "found.xml")) for case in s}
    assert cases["steps_have_gradients"].result[0].message == "off by ours.tspec:5"
