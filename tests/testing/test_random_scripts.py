"""Random scripts, decided by the rules of the essentials: all executors agree on each of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tspec.resolve import load
from tspec.testing.suite import run_all

MODULES = ("hygiene", "health", "data", "precision", "replicas", "losses")
PARAMETERS = ("w", "b", "head.weight")


def number(dice: Random) -> str:
    return dice.choice(["0.0", "1.0", "-2.5", "1e-8", "3000.0", "nan", "inf"])


def size(dice: Random) -> str:
    return dice.choice(["0.0", "1.0", "2.5", "1e-8", "3000.0", "nan", "inf"])


def tensor(dice: Random) -> str:
    said = {
        "norm": size(dice),
        "min": number(dice),
        "max": number(dice),
        "mean": number(dice),
        "std": size(dice),
        "digest": str(dice.randint(1, 3)),
        "dtype": dice.choice(["float32", "float16", "int64"]),
        "zeros": dice.choice(["0%", "90%", "100%"]),
        "shape": dice.choice(["[8, 4]", "[8, 3, 64, 64]", "[16]"]),
    }
    chosen = dice.sample(sorted(said), dice.randint(0, 4))
    return f"tensor({', '.join(f'{name}: {said[name]}' for name in chosen)})"


def state(dice: Random) -> str:
    """A state of some subject, or of the context."""
    name = dice.choice(PARAMETERS)
    field = dice.choice(["data", "grad"])
    return dice.choice(
        [
            f'parameter("{name}").{field} = changed',
            f'parameter("{name}").{field} = {tensor(dice)}',
            f'parameter("{name}").grad = absent',
            f'parameter("{name}").{dice.choice(["requires_grad"])} = {dice.choice(["true", "false"])}',
            f'parameter("{name}").group = param_group("0")',
            f'parameter("{name}").names = ["{name}"]',
            f'parameter("{name}").dtype = float32',
            f'parameter("{name}").replicas = dp',
            f'param_group("0").lr = {number(dice)}',
            f'optimizer("sgd").parameters = [parameter("w"), parameter("{name}")]',
            f'module("m") {{ root = true, called = true, training = {dice.choice(["true", "false"])},'
            f' parameters = [parameter("{name}")] }}',
            f'scaler("s").scale = {size(dice)}',
            f'buffer("mean").data = {tensor(dice)}',
            f"loss = {number(dice)}",
            f"phase = {dice.choice(['train', 'eval'])}",
            f"autocast.enabled = {dice.choice(['true', 'false'])}",
            "autocast.dtype = bfloat16",
        ]
    )


def call(dice: Random, depth: int = 0) -> str:
    """A call, with states and calls inside of it."""
    head = dice.choice(
        [
            "optimizer.step",
            f"optimizer.step(lr: {number(dice)})",
            "optimizer.zero_grad",
            "backward",
            f"backward(loss: {number(dice)})",
            f"clip(total_norm: {size(dice)})",
            f"fetch(tensors: [{tensor(dice)}])",
            f"dropout(p: 0.5, training: {dice.choice(['true', 'false'])})",
            f"matmul(output: {tensor(dice)})",
            f"cross_entropy(input: {tensor(dice)}, target: {tensor(dice)})",
            f"torch.nn.ReLU.forward(output: {tensor(dice)})",
            "load_state_dict",
        ]
    )
    inside = [happening(dice, depth + 1) for _ in range(dice.randint(0, 2))] if depth < 2 else []
    return f"{head} {{ {' '.join(inside)} }}" if inside else head


def happening(dice: Random, depth: int = 0) -> str:
    made = state(dice) if dice.random() < 0.5 else call(dice, depth)
    return made if depth or dice.random() < 0.8 else f"rank {dice.randint(0, 1)} {{ {made} }}"


def script(dice: Random) -> str:
    """A job of two ranks."""
    steps = [f"step 0 {{ {' '.join(state(dice) for _ in range(12))} }}"]
    at = 0
    for _ in range(6):
        first = at + 1
        at = first + dice.choice([0, 0, 4, 24])
        inside = " ".join(happening(dice) for _ in range(6))
        steps.append(f"step {first}..{at} {{ {inside} }}")
    return "\n".join(steps)


@pytest.mark.parametrize("module", MODULES)
def test_executors_agree(module: str, tmp_path: Path) -> None:
    dice = Random(f"a script of {module}")
    text = (
        f"edition 2026\n\nmodule random.test\n\nuse std.torch\nuse std.{module}\n\n"
        f'test "random" {{ events on 2 ranks {{\n{script(dice)}\n}} passes all others }}\n'
    )
    path = tmp_path / "random.test.tspec"
    path.write_text(text)
    loaded = load([path], project=tmp_path, tests=True)
    assert loaded.program is not None, [each.message for each in loaded.diagnostics]
    found = run_all(loaded.program, hooks=True)
    assert found.faults == (), text
    (judged,) = found.tests
    assert judged.test_run.problem is None, text
    assert any(judged.test_run.decisions.values()), text
