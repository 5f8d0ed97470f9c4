"""`tspec compile`: the file that it writes, and what it says of rules."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tspec.cli.app import app
from tspec.cli.given import given_values

MEGATRON = Path(__file__).parents[2] / "specs" / "megatron"
RULES = """\
edition 2026

module checks

use std.torch

invariant parameters_agree {
  for p in parameters
  across tp
  after optimizer.step
  expect same(p.data)
  else stop
}

invariant late_steps_clear {
  each step
  when step > 1 and step > 10
  expect contains optimizer.zero_grad
  else warn
}
"""


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "checks.tspec"
    path.write_text(RULES)
    return path


def test_the_same_rules_give_the_same_file(rules: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    result = tspec("compile", rules, "--target", "torch", "-o", one)
    assert result.exit_code == 0, result.output
    assert f"2 rules compiled to {one}" in result.stdout
    assert tspec("compile", rules, "-o", other).exit_code == 0
    assert one.read_bytes() == other.read_bytes()
    assert f"{rules}:7" in one.read_text()
    compile(one.read_text(), str(one), "exec")


def test_what_follows_is_left_out_and_said(rules: Path, tmp_path: Path) -> None:
    result = tspec("compile", rules, "-o", tmp_path / "hooks.py")
    assert "`checks.late_steps_clear`: `step > 1` follows from the rest" in result.stderr


def test_what_is_given_decides(rules: Path, tmp_path: Path) -> None:
    result = tspec("compile", rules, "--given", "tp=1", "-o", tmp_path / "hooks.py")
    assert result.exit_code == 0, result.output
    assert "1 rule compiled" in result.stdout
    assert (
        "`checks.parameters_agree` has nothing to check: a group of one rank on tp" in result.stderr
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--given", "tpp=1"], "did you mean `tp`?"),
        (["--given", "tp"], "no NAME=VALUE"),
        (["--given", "tp=1", "--given", "tp=2"], "given twice"),
        (["--target", "tensorflow"], "there is no target `tensorflow`"),
    ],
)
def test_a_wrong_call_exits_with_two(
    rules: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    hooks = tmp_path / "hooks.py"
    result = tspec("compile", rules, *options, "-o", hooks)
    assert result.exit_code != 0
    assert said in result.stderr + str(result.exception)
    assert not hooks.exists()


def test_given_values_have_types() -> None:
    expected = {"tp": 8, "cuda.available": False, "phase": "eval, or train"}
    said = ["tp=8", "cuda.available=false", "phase=eval, or train"]
    assert given_values(said) == given_values([",".join(said)]) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        ("tp=8,pp=4", ()),
        (
            "tp=8,pp=1",
            ("stages_hold_equal_copies", "stages_hold_every_layer", "stages_read_the_same_tokens"),
        ),
        (
            "tp=1,pp=4",
            (
                "gradients_of_copies_agree", "shards_differ", "default_streams_agree",
                "tensor_parallel_streams_differ", "residual_stream_agrees", "tokens_agree",
                "targets_agree", "losses_agree", "positions_agree", "masks_agree", "rotary_angles_agree",
                "heads_drop_from_their_own_stream", "ranks_hold_the_whole_vocabulary",
            ),
        ),
    ],
)  # fmt: skip
def test_a_known_layout_leaves_rules_out_of_the_megatron_pack(
    given: str, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks.py"
    result = tspec("compile", MEGATRON, "--target", "megatron", "--given", given, "-o", hooks)
    assert result.exit_code == 0, result.output
    assert f"{49 - len(left_out)} rules compiled" in result.stdout
    text = hooks.read_text()
    for rule in left_out:
        assert f"`std.megatron.{rule}` has nothing to check" in " ".join(result.stderr.split())
        assert f"std.megatron.{rule}\n" not in text
    assert "std.megatron.copies_agree\n" in text


def test_a_missing_folder_is_an_error_before_the_work(rules: Path) -> None:
    rules.write_text("this is no spec")
    result = tspec("compile", rules, "-o", rules.parent / "nowhere" / "hooks.py")
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "there is no folder" in said and "to write hooks.py into" in said
    assert "error[TS" not in said
    assert not (rules.parent / "nowhere").exists()
