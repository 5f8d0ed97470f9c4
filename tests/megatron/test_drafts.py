"""Drafts from sound Megatron jobs speak of its groups and main gradients, and are silent on sound jobs of other kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import recorded

MODULE = "std.megatron"
SIBLINGS = ("tp=2,dp=2", "tp=2,pp=2,seed=1,steps=30")
"""Three looks at the embeddings that stages share are six on two groups: fewer are no support."""

OTHERS = (
    "dp=2,zero,bf16,seed=2",
    "dp=2,zero,overlap,gather,seed=2",
    "pp=2,virtual=2,zero,bf16,seed=2",
    "tp=2,sp,experts=4,etp=2,seed=2",
    "fp16,seed=2",
)
GRADIENTS = "present(p.main_grad) and not p.sharded and not p.expert"
SAID = {
    ("dp", "after finalize_grads every 10 steps", GRADIENTS, "same(p.main_grad)"),
    ("pp", "after finalize_grads every 10 steps", GRADIENTS, "same(p.main_grad)"),
    (
        "tp",
        "after finalize_grads every 10 steps",
        f"{GRADIENTS} and not p.tensor_model_parallel",
        "same(p.main_grad)",
    ),
    ("dp", "before update every 10 steps", "p in models.parameters", "same(p.data)"),
    (
        "tp",
        "before update every 10 steps",
        "p in models.parameters and not p.tensor_model_parallel",
        "same(p.data)",
    ),
    *(
        (axis, "during update", "present(update.grad_norm)", "same(update.grad_norm)")
        for axis in ("tp", "dp", "pp")
    ),
}
"""Axis, window, condition and claim of drafts that must be there."""


def said(text: str) -> set[tuple[str, str, str, str]]:
    """Axis, window, condition and claim of the drafts that compare ranks."""
    found = set()
    for block in re.findall(r"draft invariant \w+ \{(.*?)\n  else warn", text, re.DOTALL):
        one_line = " ".join(block.split())
        parts = re.search(r"across (\w+) (.*?)(?: when (.*))? expect (.*)", one_line)
        if parts is not None:
            axis, window, when, claim = parts.groups(default="")
            found.add((axis, window, when, claim))
    return found


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tspec infer` writes from two siblings."""
    folder = tmp_path_factory.mktemp("siblings")
    for layout in SIBLINGS:
        recorded(folder / layout, layout, MODULE)
    runs = [str(folder / layout) for layout in SIBLINGS]
    file = folder / "drafts.tspec"
    ended = done("-m", "tspec", "infer", *runs, "--use", MODULE, "-o", str(file))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return file


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_drafts_speak_of_groups_and_main_gradients(drafts: Path) -> None:
    found = said(drafts.read_text())
    assert found >= SAID
    assert {axis for axis, *_ in found} == {"tp", "dp", "pp"}
    text = drafts.read_text()
    assert "world" not in text
    assert not re.search(r"expect same\(p\.(?!data|main_grad|requires_grad)", text)


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", OTHERS)
def test_drafts_are_silent_on_jobs_of_other_kinds(
    layout: str, drafts: Path, tmp_path: Path
) -> None:
    recorded(tmp_path / "run", layout, MODULE)
    ended = done("-m", "tspec", "check", str(drafts), "--trace", str(tmp_path / "run"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 violated" in ended.stdout
