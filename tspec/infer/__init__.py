"""Drafts of rules from traces of good runs (TrainCheck, section 3): survey, propose, decide, select, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.infer.drafts import Draft, Dropped
from tspec.resolve.rules import Vocabulary

STANDARD = ("std.torch",)


@dataclass(frozen=True, slots=True)
class Inference:
    """What inference found: the drafts to show (most telling first), those held back, and why others fell."""

    drafts: tuple[Draft, ...]
    held_back: tuple[Draft, ...]
    dropped: tuple[Dropped, ...]
    implied: tuple[tuple[Draft, str], ...]
    """Drafts that others imply, each with the name of one that does."""
    untyped: tuple[str, ...]
    """Candidates that the vocabulary cannot type: a fault of a relation's."""


def infer(
    runs: Sequence[Path], *, uses: Sequence[str] = STANDARD, everything: bool = False
) -> Inference:
    """Infer drafts from recorded runs. Raises TraceError for a folder that holds no trace.

    `uses` are the modules that give the vocabulary; `everything` shows what is held back as well.
    """
    from tspec.infer import select
    from tspec.infer.drafts import judge
    from tspec.infer.evidence import gather
    from tspec.infer.implied import remove_implied
    from tspec.infer.relations import RELATIONS
    from tspec.infer.runs import survey

    seen = survey(runs, _vocabulary(uses))
    claims = tuple(dict.fromkeys(claim for propose in RELATIONS for claim in propose(seen)))
    evidence = gather(claims, runs, uses)
    claims = tuple(c for c in claims if (c.frame, c.expect, c.guard) in evidence.columns)
    drafts, dropped = judge(claims, evidence)
    own = select.prefer_exact(select.reduce_sequences(drafts))
    kept, implied = remove_implied(own, uses)
    ranked = select.rank(kept)
    most = len(ranked) if everything else select.MOST_SHOWN
    return Inference(ranked[:most], ranked[most:], dropped, implied, evidence.untyped)


def _vocabulary(uses: Sequence[str]) -> Vocabulary:
    from tspec.resolve import load_text

    text = "\n".join(["edition 2026", "module vocabulary", *(f"use {use}" for use in uses), ""])
    loaded = load_text(text, name="vocabulary.tspec")
    if loaded.program is None:
        raise ValueError(loaded.diagnostics[0].message)
    return loaded.program.vocabulary
