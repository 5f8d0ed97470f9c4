"""Compiled rules as text: the same bytes each time, readable, and nothing in them that a spec has smuggled in."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from tspec.resolve import load, load_text
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Program
from tspec.resources import shipped
from tspec.source import NOWHERE, Source
from tspec.targets.compile import CannotCompile, compile_program
from tspec.targets.literals import comment, identifier, literal
from tspec.targets.load import module_of

HEAD = "edition 2026\n\nmodule t\n\nuse std.torch\n\n"
ESSENTIALS = Path(__file__).parents[2] / "specs" / "essentials"


def program(text: str) -> Program:
    loaded = load_text(HEAD + text)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


TWO = """
/// No loss is lost.
invariant finite_loss {
  for c in calls(backward)
  expect finite(c.loss)
  else skip, then stop after 3 consecutive steps
}

invariant alike {
  for p in parameters
  across dp
  after optimizer.step every 10 steps
  when step > 20
  expect same(p.data)
}
"""


def test_the_same_rules_give_the_same_bytes() -> None:
    assert compile_program(program(TWO)) == compile_program(program(TWO))


def test_hooks_follow_the_fields_of_entities_that_rules_read() -> None:
    """A field may cost digests at each update: hooks whose rules do not read it do not follow it."""
    read, unread = (
        compile_program(
            program(
                f"invariant t {{\n  for p in parameters\n  each step\n  when {when}\n  expect finite(p.data)\n}}"
            )
        )
        for when in ("not p.projected", "p.requires_grad")
    )
    assert "projected" in read
    assert "projected" not in unread


def compiled(folder: Path, seed: int) -> bytes:
    """What another process writes of a project in a folder, with its own order of hashes."""
    (folder / "rules").mkdir(parents=True)
    (folder / "tspec.toml").write_text('specs = ["rules", "std.hygiene", "specs/essentials"]\n')
    (folder / "rules" / "own.tspec").write_text(HEAD + TWO)
    output = folder / "hooks.py"
    subprocess.run(
        [sys.executable, "-m", "tspec", "compile", "-o", str(output)],
        cwd=folder / "rules",
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        check=True,
        capture_output=True,
    )
    return output.read_bytes()


@pytest.mark.slow
def test_other_folders_processes_and_orders_of_hashes_give_the_same_bytes(tmp_path: Path) -> None:
    first = compiled(tmp_path / "a", 0)
    assert compiled(tmp_path / "somewhere" / "else", 1) == first
    assert compiled(tmp_path / "b", 4242) == first
    assert str(tmp_path).encode() not in first
    assert b"rules/own.tspec" in first
    assert b"tspec:stdlib/hygiene.tspec:" in first
    assert b"tspec:specs/essentials/" in first or b"essentials.tspec" not in first


def test_findings_name_files_as_compiled_hooks_do() -> None:
    path = str(shipped("stdlib") / "data.tspec")
    named = replace(program(TWO).rules[0], source=Source(path, HEAD + TWO))
    module = module_of(compile_program(replace(program(TWO), rules=(named,))))
    assert [one.file for one in module.PROGRAM.rules] == ["tspec:stdlib/data.tspec"]


def test_shipped_packs_compile_and_the_text_is_python() -> None:
    loaded = load([ESSENTIALS])
    assert loaded.program is not None
    text = compile_program(loaded.program)
    tree = ast.parse(text)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert len([name for name in functions if name.startswith("r")]) == len(loaded.program.rules)
    assert {"begin_", "end_"} <= {name.split("_")[0] + "_" for name in functions}


def test_it_imports_the_runtime_only() -> None:
    tree = ast.parse(compile_program(program(TWO)))
    imported = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert imported == ["tspec.runtime.prelude"]


def test_a_target_differs_in_how_hooks_are_attached_only() -> None:
    torch, megatron = (compile_program(program(TWO), target=t) for t in ("torch", "megatron"))
    added = "\nfrom tspec.targets.megatron.attachment import Attachment\n"
    shared = megatron.replace(added, "", 1).partition("\nATTACHMENT = ")[0].rstrip()
    assert torch.startswith(shared)
    assert torch[len(shared) :].split() == torch[torch.index("def install(") :].split()
    module = module_of(megatron)
    for call in (module.step_begin, module.gradients_ready, module.stepped):
        with pytest.raises(RuntimeError, match=r"not attached: call attach\(\) first"):
            call(1)
    module.close()


def test_each_rule_says_where_it_stands() -> None:
    text = compile_program(program(TWO))
    line = HEAD.count("\n") + 3
    assert f"# <text>:{line}: t.finite_loss" in text
    assert '"""No loss is lost."""' in text


def test_a_group_of_one_is_left_out() -> None:
    text = compile_program(program(TWO), given={"dp": 1})
    assert "alike" not in text
    assert "finite_loss" in text


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(CannotCompile, match="there is no target `jax`"):
        compile_program(program(TWO), target="jax")


HOSTILE = (
    '"""\nimport os; os._exit(9)\n"""',
    "x'); __import__('os')._exit(9); ('",
    "\\\nraise SystemExit(9)\n#",
    "{{ 7 * 7 }}{% for x in y %}",
    "\u2028import os\u2029",
    "a\rb\x0cc\x00d",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_becomes_code(text: str) -> None:
    """Whatever names, files, documentation and strings say, the module has the same statements."""
    [plain] = program(
        'invariant r {\n  for p in parameters\n  each step\n  expect p.name != "x"\n}'
    ).rules
    assert isinstance(plain.expect, rules.Holds)
    name = rules.Constant(types.STRING, NOWHERE, text)
    condition = replace(plain.expect.condition, right=name)  # type: ignore[call-arg]
    hostile = replace(
        plain,
        name=text,
        module=text,
        doc=text,
        source=replace(plain.source, path=text),
        expect=rules.Holds(condition),
        window=replace(plain.window, kind="after", span=None, event=rules.EventPattern((text,))),
    )
    whole = program("")
    tree = ast.parse(compile_program(replace(whole, rules=(hostile,))))
    plain_tree = ast.parse(
        compile_program(
            replace(
                whole,
                rules=(
                    replace(
                        plain,
                        window=replace(
                            plain.window, kind="after", span=None, event=rules.EventPattern(("e",))
                        ),
                    ),
                ),
            )
        )
    )
    assert [type(node) for node in tree.body] == [type(node) for node in plain_tree.body]
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert text in constants
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & (set(dir(builtins)) - {"frozenset"})
    module_of(compile_program(replace(whole, rules=(hostile,))))


def test_literals_are_literals() -> None:
    for value in (True, False, None, 3, -1.5, 1e300, "a'b\"\n", (1, ("x",), ())):
        assert eval(literal(value)) == value
    assert literal(float("inf")) == "INF"
    assert literal(float("nan")) == "NAN"
    with pytest.raises(TypeError):
        literal(object())
    assert identifier("a.b c-ü") == "a_b_c"
    assert "\n" not in comment('"""\n')


def test_a_traceback_shows_the_generated_line() -> None:
    module = module_of(compile_program(program(TWO)))
    function = next(f for f in module.FUNCTIONS if "finite_loss" in f.__name__)
    with pytest.raises(AttributeError):
        function(None, None)
    try:
        function(None, None)
    except AttributeError:
        shown = traceback.format_exc()
    assert "w.now" in shown
    assert module.__file__ in shown
    assert sys.modules[module.__name__] is module
