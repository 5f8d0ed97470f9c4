"""Drafts of rules from traces of good runs (TrainCheck, section 3): survey, propose, decide, select, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.infer.drafts import Draft, Dropped
from tspec.resolve.program.rules import Vocabulary

STANDARD = ("std.torch",)


@dataclass(frozen=True, slots=True)
class Inference:
    """The result of inference: the drafts to show (most informative first), those held back, and
    why others were dropped.
    """

    drafts: tuple[Draft, ...]
    held_back: tuple[Draft, ...]
    dropped: tuple[Dropped, ...]
    implied: tuple[tuple[Draft, str], ...]
    """Drafts that others imply, each with the name of one that does."""
    runs: tuple[Path, ...]
    """The recordings that were read, without repetitions."""
    notes: tuple[str, ...]
    """Lines on recordings that are incomplete or given twice."""
    untyped: tuple[str, ...]
    """Candidates and drafts that do not type, each with the reason: a fault of a relation's."""


def infer(
    runs: Sequence[Path], *, uses: Sequence[str] = STANDARD, everything: bool = False
) -> Inference:
    """Infer drafts from recorded runs. Raises TraceError for a folder that holds no trace.

    `uses` are the modules that give the vocabulary; InferenceError is raised if one cannot be
    loaded. `everything` shows what is held back as well.
    """
    from tspec.infer import select
    from tspec.infer.drafts import does_not_type, judge
    from tspec.infer.evidence import gather
    from tspec.infer.implied import remove_implied
    from tspec.infer.recordings import examine
    from tspec.infer.relations import RELATIONS
    from tspec.infer.runs import survey
    from tspec.infer.typed import keep_typed

    known = vocabulary(uses)
    given = examine(runs)
    seen = survey(given.runs, known)
    claims = tuple(dict.fromkeys(claim for propose in RELATIONS for claim in propose(seen)))
    evidence = gather(claims, given.runs, uses)
    drafts, dropped = judge(claims, evidence)
    own = select.prefer_exact(select.reduce_sequences(drafts))
    typed, ill_typed = keep_typed(own, uses)
    kept, implied = remove_implied(typed)
    ranked = select.rank(kept)
    most = len(ranked) if everything else select.MOST_SHOWN
    return Inference(
        drafts=ranked[:most],
        held_back=ranked[most:],
        dropped=(*dropped, *ill_typed),
        implied=implied,
        runs=given.runs,
        notes=given.notes,
        untyped=(
            *(
                f"`{text}` {does_not_type(problem)}"
                for (_, text, _), problem in evidence.untyped.items()
            ),
            *(f"`{each.claim.expect}` {each.reason}" for each in ill_typed),
        ),
    )


def vocabulary(uses: Sequence[str]) -> Vocabulary:
    """The vocabulary of modules. Raises InferenceError if one cannot be loaded."""
    from tspec.infer.candidates import InferenceError
    from tspec.infer.heads import header
    from tspec.resolve import load_text

    loaded = load_text("\n".join([*header("vocabulary", uses), ""]), name="vocabulary.tspec")
    if loaded.program is None:
        error = next(each for each in loaded.diagnostics if each.severity == "error")
        raise InferenceError(f"cannot use {', '.join(uses)}: {error.message}")
    return loaded.program.vocabulary
