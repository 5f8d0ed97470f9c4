"""A field that is not there: the hint names those that are."""

from pathlib import Path

import pytest

from tests import warm
from tspec.resolve.load import load_text

HEAD = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"


@pytest.mark.parametrize(
    ("declared", "hint"),
    [
        (
            "invariant cleared {\n  for o in optimizers\n  each step\n"
            "  expect count(calls(optimizer.zero_grad, optimizer: o)) == 1\n  else warn\n}\n",
            "it has no fields",
        ),
        (
            'test "a call" {\n  events { step 1 { optimizer.zero_grad(optimizer: 1) } }\n}\n',
            "it has no fields",
        ),
        (
            'test "a field" {\n  events { step 1 { generator("torch").qqqq = 0.1 } }\n}\n',
            "it has `name`, `state`",
        ),
    ],
)
def test_the_hint_names_the_fields_that_there_are(declared: str, hint: str) -> None:
    found = load_text(HEAD + declared, "example.tspec").diagnostics
    [of_field] = [each for each in found if each.code in ("TS0121", "TS0124")]
    assert (of_field.hint or "").startswith(hint)


def test_a_folder_without_packs_is_said(tmp_path: Path) -> None:
    done = warm.run("packs", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"no pack in {tmp_path}\n")
