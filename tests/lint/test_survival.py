"""Whatever resolves can be linted and fixed: nothing that a file says brings lint down."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.check.strategies import body, spec
from tests.families import family
from tests.resolve.test_survival import HEAD, mutated, rule
from tspec.diagnostics import render
from tspec.lint import Settings, autofix, lint
from tspec.resolve import Loaded, load, load_text

FILE = Path("it.tspec")


def survives(text: str, tmp_path: Path) -> int:
    path = tmp_path / FILE
    path.write_text("")
    loaded = load([path], texts={path: text})
    if loaded.program is None:
        return 0
    for each in lint(loaded):
        assert render(each.diagnostic)

    def read(texts: dict[Path, str]) -> Loaded:
        return load([path], texts={path: texts.get(path, text)})

    for unsafe in (False, True):
        done = autofix(read, Settings(), unsafe)
        after = done.changed.get(path, ("", text))[1]
        assert read({path: after}).program is not None
    return 1


def declarations(text: str) -> list[str]:
    """Those declarations that resolve by themselves."""
    parts = [part for part in text.split("\n\n") if part.strip()]
    return [part for part in parts if load_text(HEAD + part).program is not None]


@pytest.mark.slow
def test_rules_of_random_parts(tmp_path: Path) -> None:
    dice = random.Random(1)
    found: list[str] = []
    for number in range(5000):  # one of some hundred resolves
        found += declarations(rule(dice).replace(" it ", f" it{number} "))
        if len(found) == 3:
            break
    assert found and survives(HEAD + "\n\n".join(found), tmp_path)


@pytest.mark.parametrize("seed", family(range(4), (), {"0"}))
def test_mutated_declarations(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    survived = 0
    for _ in range(100):
        survived += sum(survives(HEAD + each, tmp_path) for each in declarations(mutated(dice)))
        if survived >= 5:
            break
    assert survived >= 5


@pytest.mark.parametrize("seed", family(range(3), (), {"0"}))
def test_random_rules(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    bodies = [body(dice) for _ in range(8)]
    survives(spec(bodies), tmp_path)


@pytest.mark.parametrize(
    "comment",
    [
        "// tspec:", "// tspec: allow", "// tspec: allow TS0443 because", "// tspec: allow , because x",
        "// tspec: allow TS0443 TS0452 because of both", "//tspec:allow TS0443 because x because y",
        "// tspec: allow \u2603 because \u2603", "// tspec: allow TS0443 becauseof", "/// tspec: allow TS0443",
    ],
)  # fmt: skip
def test_any_comment(comment: str, tmp_path: Path) -> None:
    rule = "invariant losses_are_small {\n  each step\n  expect loss < 1\n}"
    assert survives(f"{HEAD}{comment}\n{rule} {comment}\n{comment}\n", tmp_path)
