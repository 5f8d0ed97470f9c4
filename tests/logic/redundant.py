"""Random rules of which parts follow from others: literals about the same few reads."""

from __future__ import annotations

from random import Random

from tests.check.strategies import spec

OF_PARAMETER = (
    "p.lr > 0", "p.lr > 1", "p.lr >= 1", "p.lr <= 2", "p.lr == 1", "p.lr != 1", "not p.lr > 1",
    "p.order in [0, 1]", "p.order == 1", "p.order < 2", "p.order >= 0", "p.order + 1 > 1",
    "present(p.grad)", "norm(p.data) > 1", "norm(p.data) >= 0", "norm(p.data) > 0.5",
    "zeros(p.data) <= 1", "zeros(p.data) < 50%", "p.requires_grad", "not p.requires_grad",
    "present(p.grad) and norm(p.grad) > 1", "present(p.grad) implies norm(p.grad) > 0",
    'p.label == "bias"', 'p.label in ["bias", "weight"]', "2 * p.lr <= 3 * p.lr", "p.lr + 1 > p.lr",
    "isinstance(p.module, torch.nn.Linear)", "p.data.dtype == float32", "p.data.dtype != float32",
)  # fmt: skip
OF_JOB = (
    "step > 0", "step >= 1", "step > 1", "step > 2", "step != 2", "phase == train", "phase == eval",
    "enabled", "not enabled", "loss > 0", "loss > 1", "loss >= 1", "loss == loss", "step < 2.5",
    "count(parameters) >= 0", "count(parameters) > 1", "divisible(step, by: 2)", "epoch >= 0",
    "previous(loss) > 0", "previous(loss) > 1", "finite(loss)", "abs(loss) >= 0", "0 < loss < 2",
)  # fmt: skip
OF_GROUP = ("same(p.data)", "all(p.lr > 0)", "max(p.lr) > 1", "max(p.lr) > 0", "spread(p.lr) >= 0")
WINDOWS = (
    "each step", "each step", "before update", "during update", "each epoch", "after update",
    "during update every 2 steps", "each step once",
)  # fmt: skip


def literal(dice: Random, pool: tuple[str, ...]) -> str:
    """One condition."""
    return f"({dice.choice(pool)})"


def joined(dice: Random, pool: tuple[str, ...], most: int) -> str:
    """A few conditions, with `and`, now and then with `or`."""
    items = [literal(dice, pool) for _ in range(dice.randint(1, most))]
    if dice.random() < 0.3:
        items[0] = f"({items[0]} or {literal(dice, pool)})"
    return " and ".join(items)


def body(dice: Random) -> str:
    """The body of an invariant."""
    across = dice.random() < 0.3
    pool = (*OF_PARAMETER, *OF_JOB)
    expects = (*pool, *OF_GROUP) if across else pool
    lines = ["for p in parameters" + dice.choice(["", "", "(requires_grad: true)"])]
    lines += ["across dp"] if across else []
    lines.append(dice.choice(WINDOWS))
    if dice.random() < 0.8:
        lines.append(f"when {joined(dice, pool, 3)}")
    claims = ["contains forward", "update before forward"] if "each" in lines[-1] else []
    wanted = joined(dice, expects, 2)
    if dice.random() < 0.1 and claims:
        wanted = dice.choice(claims)
    lines.append(f"expect {wanted}")
    return "\n".join(f"  {line}" for line in lines)


def pair(dice: Random) -> str:
    """A spec of two rules about the same reads, the second of which may follow from the first."""
    first = body(dice)
    *head, last = first.split("\n")
    word, _, conditions = last.strip().partition(" ")
    more = literal(dice, (*OF_PARAMETER, *OF_JOB))
    second = "\n".join([*head, f"  {word} {conditions}"])
    if any(line.strip().startswith("when") for line in head) and dice.random() < 0.7:
        second = second.replace("when ", f"when {more} and ", 1)
    elif "(" in conditions:
        second = second.replace("expect ", f"expect {more} or ", 1)
    return spec([first, second] if dice.random() < 0.5 else [second, first])
