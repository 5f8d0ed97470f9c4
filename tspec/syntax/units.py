"""The units of quantities."""

PLURALS = {
    "step": "steps",
    "microbatch": "microbatches",
    "epoch": "epochs",
    "second": "seconds",
    "minute": "minutes",
    "hour": "hours",
}
"""Each unit and its plural."""

SINGULARS = {word: unit for unit, plural in PLURALS.items() for word in (unit, plural)}
"""Each way to write a unit, and the unit."""
