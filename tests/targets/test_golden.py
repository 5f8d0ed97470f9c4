"""Generated hooks of rules that use every construct, kept to be read and reviewed like code.

`pytest --update-cases` writes what came out. What a module says of the vocabulary (`WATCH`) is left out.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tspec.resolve import load
from tspec.resolve.program.rules import Program
from tspec.targets.compile import compile_program
from tspec.targets.layout import laid_out
from tspec.targets.load import module_of

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(GOLDEN.glob("*.tspec"))
SPECS = Path(__file__).parents[2] / "specs"
ESSENTIALS = SPECS / "essentials"
PACKS = [path for path in sorted(SPECS.iterdir()) if list(path.glob("*.tspec"))]


def program(path: Path) -> Program:
    loaded = load([path])
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_hooks_read_as_they_did(case: Path, request: pytest.FixtureRequest) -> None:
    text = compile_program(program(case), root=GOLDEN)
    shown = text[: text.index("\nWATCH = ")]
    expected = case.with_suffix(".py")
    if request.config.getoption("--update-cases"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")


def constructs(text: str) -> set[str]:
    """What generated code calls."""
    return {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }


def test_the_golden_files_use_every_construct_of_the_essentials() -> None:
    used = set().union(*(constructs(case.with_suffix(".py").read_text()) for case in CASES))
    text = compile_program(program(ESSENTIALS))
    shipped = constructs(text[: text.index("\nWATCH = ")])
    assert shipped <= used


@pytest.mark.parametrize("case", [*CASES, ESSENTIALS], ids=lambda case: case.stem)
def test_lines_fit_on_a_screen_but_for_literals(case: Path) -> None:
    text = compile_program(program(case))
    long = [line for line in text.splitlines() if len(line) > 120]
    assert [
        line for line in long if not line.lstrip().startswith(("text=", "claim=", "'", '"'))
    ] == []


@pytest.mark.parametrize("case", [*CASES, ESSENTIALS], ids=lambda case: case.stem)
def test_nothing_is_asked_for_in_vain(case: Path) -> None:
    text = compile_program(program(case))
    assert "want(())" not in text
    assert "keep((), ())" not in text


def calls_of(text: str, function: str) -> list[str]:
    """The calls in a function, as Python."""
    [found] = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return [ast.unparse(node) for node in ast.walk(found) if isinstance(node, ast.Call)]


def test_a_guard_of_several_rules_is_evaluated_once_at_a_hook() -> None:
    text = compile_program(program(GOLDEN / "during_old_and_guard.tspec"))
    [name] = [line.split("(")[0][4:] for line in text.splitlines() if line.startswith("def begin_")]
    guards = [one for one in calls_of(text, name) if one.startswith("equal(e.now.ambient('phase')")]
    assert len(guards) == 1  # of two rules


def test_what_a_message_shows_is_read_once() -> None:
    text = compile_program(program(GOLDEN / "last_call_and_arithmetic.tspec"))
    [name] = [line.split("(")[0][4:] for line in text.splitlines() if line.startswith("def r0_")]
    found = calls_of(text, name)
    norms = [one for one in found if one.startswith("feature(") and one.endswith("'norm')")]
    assert len(norms) == 1


def test_the_group_is_found_before_the_loop() -> None:
    text = compile_program(program(GOLDEN / "across_ranks.tspec"))
    body = text[text.index("def r0_") : text.index("def joint_r0_")]
    assert body.index("w.group(") < body.index("for n0_p")


def globals_of(code: CodeType) -> Iterator[str]:
    """The global names that code loads, that of functions within it too."""
    for one in dis.get_instructions(code):
        if one.opname == "LOAD_GLOBAL":
            yield one.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_of(constant)


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_every_name_in_the_hooks_of_a_pack_is_defined(pack: Path) -> None:
    module = module_of(compile_program(program(pack)))
    functions = [one.__code__ for one in vars(module).values() if isinstance(one, FunctionType)]
    own = [code for code in functions if code.co_filename == module.__file__]
    loaded = {name for code in own for name in globals_of(code)}
    assert own and loaded - vars(module).keys() - vars(builtins).keys() == set()


LAID_OUT = (
    "x = f(a, 'b, c', [1, 2])",
    "x = [g(a0, a1) for a0, a1 in zip(v0, v1, strict=True)]",
    "if not now.matches('dtype', column.get(name, NOT_RECORDED), ('a', 'b')):",
    "when = False if w.idle else both(present(x), lambda: greater(y, 'it\\'s (')) ",
    "x = (f(a),)",
    "x = {'a': (1,), 'b': ()}",
    'rule.decide(w, (f"#{w.at[1]}",), True, expect)',
)


@pytest.mark.parametrize("line", LAID_OUT)
@pytest.mark.parametrize("width", (10, 30, 60))
def test_a_line_that_is_laid_out_means_the_same(line: str, width: int) -> None:
    body = "\n    pass" if line.endswith(":") else ""
    laid = "\n".join(laid_out([line.rstrip()], width))
    assert ast.dump(ast.parse(laid + body)) == ast.dump(ast.parse(line.rstrip() + body))
