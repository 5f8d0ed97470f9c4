"""Specs that a random edit made wrong, or odd: nothing that tspec does with one may fail inside of tspec.

`run(count, seed)` makes so many of them and gives those at which something failed.
"""

from __future__ import annotations

import random
import re
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from tests.faults.outcome import Failure, Outcome, Progress
from tspec.diagnostics import WIDTH, render
from tspec.diff import compare
from tspec.diff.formats.json import as_json
from tspec.diff.formats.markdown import as_markdown
from tspec.diff.sides.side import Side
from tspec.layout.faults import faults
from tspec.lint import Settings, lint
from tspec.logic import simplify_program
from tspec.resolve import Loaded
from tspec.resolve.load import load_text
from tspec.resources import shipped
from tspec.source import Source
from tspec.syntax.editions import upgrade
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse
from tspec.syntax.tokens import keywords, signs
from tspec.targets.compile import CannotCompile, compile_program
from tspec.testing.suite import run_all
from tspec.why.explain import explain
from tspec.why.show_explained import as_text

CASES = Path(__file__).parents[1] / "cases"
HEAD = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"
LONGEST = 4_000
"""Characters of a spec to begin with: long ones find no more, and take longer."""
MOST_SECONDS = 60
"""What one edited spec may take; more is a fault too."""
WHOLE_EACH = 20
"""Every so many specs of a long run go through all stages."""
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+(?:\.\w+)*|[ \t]+|\n|.', re.DOTALL)
_KINDS = {"number": r"\d", "path": r"\w+\.", "word": r"[^\W\d]", "text": '"'}
_ODD = (
    "0", "-1", "1", "999999999999999999", "9999999999999999999", "1e308", "1e999", "1e-400", "0.0",
    "inf", "nan", "50%", "0 steps", "1000000 steps", "3 minutes", "2 epochs", '""', '"a|b"', '"("',
    '"\\n"', '"\\u{202e}"', '"\u2028"', "[]", "{}", "[1, [2]]", "true", "none", "[", "(", "((((",
    "))", "not not", "- -", "..", "é", "λ", "名", "\u202e", "\u2028", "\x1b[31m", "\x00", "\ufeff",
    "\r", "\r\n", "\t", "//", "///", "/*", "'", '"', "`", "\\", "$", "@", "#", "world", "step",
    "loss", "p", "self", "old(loss)", "prev(loss)", "first(loss)", "count(parameters)",
    "max(loss, over: 5 steps)", "all(loss > 0)", "same(loss)", "calls(optimizer.step)", "p.grad",
    "loss.loss", "optimizer.step", "std.torch", "torch.nn.Linear", "_", "__class__", "x" * 300,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """A spec at which something failed, and how."""

    number: int
    stage: str
    text: str
    said: str

    def __str__(self) -> str:
        return f"--- {self.number}: {self.stage}\n{self.text}\n---\n{self.said}"


class TooLong(Exception):
    """One spec took more than `MOST_SECONDS`."""


@cache
def sound() -> tuple[str, ...]:
    """Specs to begin with: those that ship, cut where they are long, and those of case files."""
    found = [
        path.read_text(encoding="utf-8")
        for folder in (shipped("stdlib"), shipped("specs"))
        for path in sorted(folder.rglob("*.tspec"))
    ]
    found += [*_cases("diff", "layouts", "lint", "testing", "why")]
    return tuple(cut for text in found for cut in _cut(text) if cut.strip())


@cache
def wrong() -> tuple[str, ...]:
    """Specs with an error to begin with."""
    return tuple(_cases("errors"))


def _cases(*folders: str) -> Iterator[str]:
    for folder in folders:
        for path in sorted((CASES / folder).glob("*.case")):
            text = re.split(r"(?m)^(?:===|---).*$", path.read_text(encoding="utf-8"))[0]
            yield text if "edition" in text else HEAD + text


def _cut(text: str) -> Iterator[str]:
    """A text, or where it is long, parts of it that each have its head."""
    head, *declarations = re.split(r"\n\n(?=\S)", text)
    uses = [part for part in declarations if re.search(r"(?m)^(module|use) ", part)]
    part = first = "\n\n".join([head, *uses])
    for declaration in declarations:
        if declaration in uses:
            continue
        if len(part) + len(declaration) > LONGEST and part is not first:
            yield part
            part = first
        part = f"{part}\n\n{declaration}"
    yield part


@cache
def words() -> tuple[str, ...]:
    """What a token may be replaced with."""
    return (*keywords().values(), *signs().values(), *_ODD)


def edited(chance: random.Random) -> tuple[str, str]:
    """A spec, and the same after one to four random edits."""
    text = chance.choice(sound() if chance.random() < 0.8 else wrong())
    pieces = _TOKEN.findall(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if chance.random() < 0.3:
            lines = "".join(pieces).splitlines(keepends=True)
            pieces = _TOKEN.findall("".join(_edit(lines, chance, _line)))
        else:
            pieces = _edit(pieces, chance, _word)
    return text, "".join(pieces)


def _edit(
    pieces: list[str], chance: random.Random, another: Callable[[random.Random], str]
) -> list[str]:
    """The tokens with one deleted, doubled, swapped with another, replaced or added."""
    if not pieces:
        return [another(chance)]
    places = [n for n, piece in enumerate(pieces) if piece.strip()] or [0]
    place, other = chance.choice(places), chance.choice(places)
    found = list(pieces)
    match chance.randrange(12):
        case 0:
            del found[place]
        case 1:
            found[place:place] = [pieces[place]] * chance.choice((1, 1, 1, 2, 200))
        case 2:
            found[place], found[other] = pieces[other], pieces[place]
        case 3:
            found[place] = another(chance)
        case 4:
            found.insert(place, f" {another(chance)} ")
        case _:
            values = [n for n in places if _kind(pieces[n])] or places
            place = chance.choice(values)
            kind = _kind(pieces[place])
            found[place] = pieces[chance.choice([n for n in places if _kind(pieces[n]) == kind])]
    return found


def _kind(piece: str) -> str:
    """Names, numbers and texts may often stand for each other; nothing for keywords and signs."""
    if piece in keywords().values():
        return ""
    return next((kind for kind, pattern in _KINDS.items() if re.match(pattern, piece)), "")


def _word(chance: random.Random) -> str:
    return chance.choice(words())


def _line(chance: random.Random) -> str:
    return chance.choice(chance.choice(sound()).splitlines(keepends=True))


def run(
    count: int, seed: int, progress: Progress = lambda done: None, every: int = WHOLE_EACH
) -> Outcome:
    """Try `count` edited specs. All are parsed and formatted; one in `every` goes through all stages."""
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(count):
            text, after = edited(random.Random(f"{seed}:{number}"))
            fault = failing(number, text, after, Path(name), number % every == 0)
            if fault is not None:
                files = {"before.tspec": text, "edited.tspec": after}
                written = {name: each.encode("utf-8", "replace") for name, each in files.items()}
                failures.append(Failure(f"spec-{seed}-{number}", str(fault), written))
            progress(number + 1)
    return Outcome({"no fault": count - len(failures)}, tuple(failures))


def failing(
    number: int, before: str, after: str, project: Path, whole: bool = True
) -> Fault | None:
    """Do all that tspec does with a spec, or with two versions of one; what failed, or None.

    Without `whole` it is parsed and formatted only, which takes a tenth of the time.
    """
    stage = "parse"
    try:
        with _limited():
            for stage, do in _stages(before, after, project, whole):  # noqa: B007 (said of a failure)
                do()
    except Exception:
        return Fault(number, stage, after, traceback.format_exc(limit=-8))
    return None


Stage = tuple[str, Callable[[], object]]


def _stages(before: str, after: str, project: Path, whole: bool) -> Iterator[Stage]:
    yield "format", lambda: _formatted(after)
    if not whole:
        return
    loaded: list[Loaded] = []
    yield "load", lambda: loaded.append(_loaded(after, project))
    (new,) = loaded
    if new.program is None:
        return
    program = new.program
    yield "lint", lambda: [render(each.diagnostic) for each in lint(new, Settings())]
    yield "layouts", lambda: [render(each) for each in faults(program)]
    yield "compile", lambda: _compiled(new)
    yield "simplify", lambda: simplify_program(program, {})
    yield "explain", lambda: [as_text(explain(rule, program)) for rule in program.rules[:2]]
    yield "test", lambda: run_all(program)
    old = _loaded(before, project)
    if old.program is not None:
        sides = Side("old", old.program, old.units), Side("new", new.program, new.units)
        yield "diff", lambda: [write(compare(*sides)) for write in (as_json, as_markdown)]


def _formatted(text: str) -> None:
    """What is right stays the same tree when it is formatted, and formatting it again changes nothing."""
    parsed = parse(Source("edited.tspec", text))
    for found in parsed.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert max(map(len, render(found).split("\n"))) <= WIDTH
    written = format_file(parsed.file)
    if not any(found.severity == "error" for found in parsed.diagnostics):
        again = parse(Source("edited.tspec", written))
        assert again.file == parsed.file, "formatting changes what is said"
        assert format_file(again.file) == written, "formatting again changes the text"
        upgrade(parsed.file)


def _loaded(text: str, project: Path) -> Loaded:
    loaded = load_text(text, str(project / "edited.tspec"), project=project)
    for found in loaded.diagnostics:
        render(found)
    return loaded


def _compiled(loaded: Loaded) -> None:
    assert loaded.program is not None
    try:
        text = compile_program(loaded.program)
    except CannotCompile:
        return
    compile(text, "hooks.py", "exec")


@contextmanager
def _limited() -> Iterator[None]:
    """Raises TooLong after `MOST_SECONDS`."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
