"""What SECURITY.md says of the code of strangers: which commands run it, and which never do."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.cli.recordings import record_loop
from tests.families import family
from tests.faults.processes import PATIENCE, ROOT
from tspec.resolve import load
from tspec.targets.compile import compile_program

COMMAND = Path(sys.executable).with_name("tspec")
"""The installed command; `python -m` would look for modules in the working folder, whatever it runs."""
MARK = """from pathlib import Path
with open({mark!r}, "a") as file:
    file.write(__name__ + "\\n")
"""
SHADOWED = (
    "conftest", "duckdb", "json", "lark", "pyarrow", "rich", "sitecustomize", "std", "stranger", "torch", "tspec", "typer", "z3",
)  # fmt: skip
"""Modules of the project's folder, with the names of those that commands import."""
RULES = """edition 2026

/// Rules that name what a stranger wrote.
module rules

use std.torch

event work = call stranger.work {
  rate: float = self.rate
}

event open_family = call stranger.* {
  rate: float
}

/// Work is never done at a negative rate.
invariant rates_are_positive {
  for c in calls(work)
  expect c.rate > 0
  else stop
}

/// Each step clears.
invariant clears {
  each step
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}

/// Models of a stranger train.
invariant models_train {
  for m in modules(class: stranger.Model)
  each step
  expect m.training
  else warn
}
"""
TEST = """edition 2026

/// Where the rules fire.
module rules.test

use std.torch
use rules

test "a forgotten zero_grad" {
  events {
    step 1 { backward, optimizer.step }
    step 2 { backward, optimizer.step }
  }
  passes rates_are_positive
}
"""
JOB = """import sys
if "stranger" in sys.argv:
    import stranger
import torch.nn
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file to which a module of the project adds its name when it is imported."""
    return tmp_path / "imported.txt"


@pytest.fixture
def project(tmp_path: Path, mark: Path) -> Path:
    """A folder such as a pull request may hold: rules, a configuration, a recording, and modules."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(MARK.format(mark=str(mark)))
    (folder / "rules.tspec").write_text(RULES)
    (folder / "rules.test.tspec").write_text(TEST)
    (folder / "cuts.tspec").write_text(LAYOUT)
    (folder / "tspec.toml").write_text('specs = ["rules.tspec"]\nbaseline = "baseline.json"\n')
    (folder / "baseline.json").write_text('{"version": 1, "findings": []}')
    record_loop(folder / "run", clears=False)
    whole = torch.arange(4.0)
    torch.save({"weight": whole}, folder / "full.pt")
    (folder / "shards").mkdir()
    for rank, piece in enumerate(whole.chunk(2)):
        torch.save({"weight": piece.clone()}, folder / f"shards/rank-{rank}.pt")
    return folder


def tspec(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=project,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


LAYOUT = """edition 2026

module cuts

mesh cuts {
  order: tp
  tp: 2
}

layout cuts on cuts {
  param "weight": [4 / tp]
}
"""

READING = (
    ("fmt", "--check", "."),
    ("lint", "rules.tspec"),
    ("diff", "rules.tspec", "rules.test.tspec"),
    ("check", "--trace", "run"),
    ("why", "rules.clears", "--trace", "run"),
    ("test", "."),
    ("test", "--executors", "all", "."),
    ("mutate", "rules.tspec", "--tests", "."),
    ("explain", "rules.clears"),
    ("compile", "rules.tspec", "--target", "torch", "-o", "hooks.py"),
    ("packs", "."),
    ("trace", "show", "run"),
    ("layout", "show", "cuts.tspec"),
    ("infer", "run", "-o", "drafts.tspec"),
    ("infer", "--layout", "cuts", "--mesh", "tp=2", "--full", "full.pt", "-o", "d.tspec", "shards"),
)
"""Every command that runs no script."""


FAST = {
    "lint rules.tspec",
    "check --trace run",
    "test --executors all .",
    "explain rules.clears",
    "compile rules.tspec --target torch -o hooks.py",
    "infer run -o drafts.tspec",
}
"""Commands that resolve rules, read recordings, run tests, and write code and rules."""


@pytest.mark.parametrize("arguments", family(READING, (), FAST, name=" ".join))
def test_a_command_that_reads_imports_nothing_of_the_project(
    arguments: tuple[str, ...], project: Path, mark: Path
) -> None:
    done = tspec(project, *arguments)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert not mark.exists(), mark.read_text()


def test_every_command_is_one_that_reads_or_one_that_runs_a_script() -> None:
    from tspec.cli.app import app

    named = {
        each.name or each.callback.__name__ for each in app.registered_commands if each.callback
    }
    named |= {each.name for each in app.registered_groups}
    assert named == {arguments[0] for arguments in READING} | {"record", "run", "preflight"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("run", "rules.tspec"), ("record", "--use", "rules.tspec", "-o", "recorded")],
    ids=lambda arguments: arguments[0],
)
def test_rules_alone_make_a_job_import_nothing(
    arguments: tuple[str, ...], project: Path, mark: Path
) -> None:
    """What rules name is watched where the script has imported it; rules import nothing but torch's own."""
    for name in SHADOWED:
        if name != "stranger":
            # The script's folder comes first where it looks for modules, as without tspec.
            (project / f"{name}.py").unlink()
    (project / "job.py").write_text(JOB)
    done = tspec(project, *arguments, "--", "job.py")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert not mark.exists()
    done = tspec(
        project,
        *(each.replace("recorded", "again") for each in arguments),
        "--",
        "job.py",
        "stranger",
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert mark.read_text() == "stranger\n"


HOSTILE = 'x\rimport os; os.system("id")\r"""\u2028import os\x0cimport os \\'
"""Text that would be code if it ended the line or the string in which it stands."""


def test_texts_of_specs_are_no_code_in_generated_hooks(tmp_path: Path) -> None:
    spec = tmp_path / "it's\rimport os.tspec"
    spec.write_text(
        RULES.replace("/// Each step clears.", f"/// {HOSTILE}").replace(
            "expect m.training", 'expect m.name != "\'\'\' \\"\\"\\" \\n import os"'
        )
    )
    program = load([spec]).program
    assert program is not None
    tree = ast.parse(compile_program(program))
    assert _imports(tree) <= {"__future__", "math", "torch", "tspec", "typing", "collections"}
    called = {
        n.func.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert not called & {"exec", "eval", "compile", "open", "__import__"}


SOURCES = sorted((ROOT / "tspec").rglob("*.py"))
BUILDS_CODE = {
    "tspec/runtime/live/instrument/frames.py",
    "tspec/runtime/live/instrument/swap.py",
    "tspec/targets/load.py",
}
"""The files that run text as Python: functions that stand in for others, and the hooks of specs."""
STARTS_PROCESSES = {
    "tspec/diff/sides/revisions.py",
    "tspec/equivalence/launch.py",
    "tspec/preflight/launch.py",
    "tspec/run/supervise.py",
}


def _imports(tree: ast.AST) -> set[str]:
    """Modules that a file imports, by their first name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


SAFE_LOAD = r"torch\.load\([^()]*weights_only=True\)"
"""Torch's own reader that makes tensors and plain containers only."""


@pytest.mark.slow
def test_nothing_unpickles_opens_a_connection_or_runs_a_shell() -> None:
    for source in SOURCES:
        text, name = source.read_text(encoding="utf-8"), str(source.relative_to(ROOT))
        tree = ast.parse(text)
        bad = {"pickle", "marshal", "shelve", "dill", "socket", "ssl", "http", "requests"}
        assert not _imports(tree) & bad, name
        assert not re.search(r"urllib\.request|shell=True|os\.system|os\.popen", text), name
        assert text.count("torch.load(") == len(re.findall(SAFE_LOAD, text)), name
        assert ("subprocess" in _imports(tree)) <= (name in STARTS_PROCESSES), name


def test_text_is_run_as_python_in_few_places() -> None:
    found = {
        str(source.relative_to(ROOT))
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("exec", "eval", "__import__")
    }
    assert found == BUILDS_CODE
