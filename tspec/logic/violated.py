"""The conditions in z3 under which two versions of a rule are violated: the reads of each, and the
reads that are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import z3

from tspec.logic.encode import Encoder, Leaf
from tspec.logic.encoded import Encoded
from tspec.logic.implied import claim_covers, renamed
from tspec.logic.occurrences import (
    OF_CALLS,
    of_the_window,
    other_windows,
    over_the_group,
    same_frame,
    same_occurrences,
    subjects_chosen_by,
    thinned_by,
    unfiltered,
    windows_chosen_by,
)
from tspec.logic.since_when import known_from
from tspec.logic.situations import Side
from tspec.logic.verdict import condition
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import looks_back
from tspec.resolve.program.rules import Claim, Contains, Expr, Holds, Ordered, Rule, Vocabulary
from tspec.source import NOWHERE
from tspec.values import STEP_OF_RUN


class RuleVersions:
    """Two versions of a rule, and the unknowns that they are read from.

    `comparable` is False where they are about other occurrences, `other_windows` True where no
    window of one is a window of the other.
    """

    def __init__(self, old: Rule, new: Rule, vocabulary: Vocabulary, exact: bool) -> None:
        self.rules: Mapping[Side, Rule] = {"old": old, "new": renamed(new, old)}
        self.vocabulary = vocabulary
        self.comparable = same_occurrences(old, self.rules["new"])
        self.other_windows = other_windows(old, new)
        self.one_frame = same_frame(old, self.rules["new"])
        self._kinds = {old.window.kind, new.window.kind}
        self._two_edges = self._kinds != {"before"}
        self.base = Encoder(exact=exact)
        self._yes = z3.BoolVal(True, self.base.context)
        self.members = self._members()
        self.encoders: dict[tuple[int, Side], Encoder] = {}
        self.claims: dict[tuple[int, Claim, Side | None], Encoded] = {}
        self.flags: dict[str, z3.BoolRef] = {}
        self.facts: list[z3.BoolRef] = []
        """Facts that hold in every job."""
        self.violated: Mapping[Side, z3.BoolRef] = {
            "old": self._rule_violated("old"),
            "new": self._rule_violated("new"),
        }
        self.facts += self._since_when()

    def _members(self) -> int:
        """The number of members of a group. Two show all that a group can do; a third one may not
        know its `when`.
        """
        old, new = self.rules["old"], self.rules["new"]
        if not old.across:
            return 1
        return 2 if (old.when, old.subjects) == (new.when, new.subjects) else 3

    # --- formulas -------------------------------------------------------------------------------

    def _rule_violated(self, side: Side) -> z3.BoolRef:
        rule = self.rules[side]
        edge = rule.window.kind == "before" and self._two_edges
        window: list[z3.BoolRef] = [self._there(rule)]
        window += [self._flag("first")] if rule.window.once else []
        has, dues, failed = [], [], []
        for member in range(self.members):
            encoder = self.encoder(member, side)

            def true(conditions: Iterator[Expr], encoder: Encoder = encoder) -> list[z3.BoolRef]:
                return [encoder.encode(each, edge).true for each in conditions]

            window += true(windows_chosen_by(rule, self.vocabulary))
            thinned = thinned_by(rule)
            if thinned is not None:  # For calls it is the step in which they began.
                opened = edge or rule.window.kind in ("during", "after", "calls")
                window.append(encoder.encode(thinned, opened).true)
            has.append(z3.And(self._yes, *true(subjects_chosen_by(rule, self.vocabulary))))
            dues.append(self._due(rule, encoder, member, edge))
            failed.append(self._claim(rule, encoder, member, edge).false)
            self.facts += self._counted(rule, encoder, has[-1])
        if not rule.across:
            return z3.And(*window, has[0], dues[0].true, failed[0])
        return z3.And(*window, self._group_violated(has, dues, failed))

    def _counted(self, rule: Rule, encoder: Encoder, has: z3.BoolRef) -> Iterator[z3.BoolRef]:
        """Constraints that a subject is counted among the subjects of its kind at the window's end."""
        if len(self._kinds) > 1:
            return
        kinds = {
            of.kind
            for of in (unfiltered(each.collection) for each in rule.subjects)
            if isinstance(of, rules.Subjects)
        }
        for (expr, start), leaf in encoder.leaves.items():
            if isinstance(expr, rules.Fold) and expr.name == "count" and not start:
                of = expr.value
                if isinstance(of, rules.Subjects) and not of.filters and of.kind in kinds:
                    yield z3.Implies(z3.And(has, leaf.known), leaf.value >= 1)

    def _group_violated(
        self, has: list[z3.BoolRef], dues: list[Encoded], failed: list[z3.BoolRef]
    ) -> z3.BoolRef:
        """Members differ on `when`; or it is due on all that have the subject, and one lacks it or fails."""
        both = list(zip(has, dues, strict=True))
        differ = z3.And(
            z3.Or(*[z3.And(here, due.true) for here, due in both]),
            z3.Or(*[z3.And(here, due.false) for here, due in both]),
        )
        lacking = z3.Or(self._flag("lacking"), *[z3.Not(here) for here in has])
        fails = [z3.And(here, wrong) for here, wrong in zip(has, failed, strict=True)]
        due = z3.And(
            z3.Or(*has),
            *[z3.Implies(here, due.true) for here, due in both],
            z3.Not(self._flag("unheard")),
        )
        return z3.Or(differ, z3.And(due, z3.Or(lacking, *fails)))

    def _since_when(self) -> list[z3.BoolRef]:
        """Look-backs are unknown in the first steps."""
        found: list[z3.BoolRef] = []
        for (_, side), encoder in list(self.encoders.items()):
            window = self.rules[side].window
            for (expr, start), leaf in list(encoder.leaves.items()):
                first = known_from(expr, window)
                if first is not None and self._is_own(expr, start):
                    step = encoder.encode(rules.Ambient(types.INT, NOWHERE, "step"))
                    found.append(z3.Implies(leaf.known, step.value >= first))
        return found

    def _is_own(self, expr: Expr, start: bool) -> bool:
        """The read is of this side's window: of both where there is one frame."""
        return self.one_frame or not self.shared((expr, start))

    def _due(self, rule: Rule, encoder: Encoder, member: int, edge: bool) -> Encoded:
        """`when`, which is not known where the window has no end but a claim may be decided before."""
        early = isinstance(rule.expect, Contains | Ordered)
        if edge and rule.when is not None:
            found = encoder.encode(rule.when, start=True)
        else:
            found = condition(rule, encoder, rule.when)
        if rule.window.kind in ("before", "after") and not self._two_edges:
            return found
        ended = self._returns(rule, member)
        if rule.when is None:
            return found if early else replace(found, known=ended)
        if rule.window.kind == "during":
            if early:
                return found
            return replace(found, known=z3.And(found.known, z3.Or(ended, found.false)))
        return replace(found, known=z3.And(found.known, ended))

    def _claim(self, rule: Rule, encoder: Encoder, member: int, edge: bool) -> Encoded:
        if isinstance(rule.expect, Holds):
            return encoder.encode(rule.expect.condition, edge)
        side: Side | None = "new" if rule is self.rules["new"] else "old"
        side = None if len(self._kinds) == 1 else side
        found = self._claimed((member, rule.expect, side))
        if isinstance(rule.expect, Contains):
            return replace(
                found, known=z3.And(found.known, z3.Or(found.value, self._returns(rule, member)))
            )
        return found

    def _claimed(self, key: tuple[int, Claim, Side | None]) -> Encoded:
        """An unknown for a claim that is no condition; a stricter claim is broken where a milder is."""
        member, claim, side = key
        if key not in self.claims:
            name = f"claim {len(self.claims)}"
            known, value = (z3.Bool(f"{name} {what}", self.base.context) for what in "kv")
            found = Encoded(known, z3.BoolVal(False, self.base.context), value)
            for (where, other, of), met in self.claims.items():
                if (where, of) != (member, side):
                    continue
                if claim_covers(claim, other):
                    self.facts.append(z3.Implies(met.false, found.false))
                if claim_covers(other, claim):
                    self.facts.append(z3.Implies(found.false, met.false))
            self.claims[key] = found
        return self.claims[key]

    def _returns(self, rule: Rule, member: int) -> z3.BoolRef:
        """True if the window has an end. An instant after a call exists only if the call returned."""
        if rule.window.kind == "before":
            return z3.BoolVal(True, self.base.context)
        return self._flag(f"returns {member}")

    def _there(self, rule: Rule) -> z3.BoolRef:
        """True if the subjects exist at the edge of the call at which the rule chooses them."""
        if len(self._kinds) == 1 or not rule.subjects:
            return z3.BoolVal(True, self.base.context)
        return self._flag(f"there {'start' if rule.window.kind == 'before' else 'end'}")

    def _flag(self, name: str) -> z3.BoolRef:
        return self.flags.setdefault(name, z3.Bool(name, self.base.context))

    # --- encoders -------------------------------------------------------------------------------

    def encoder(self, member: int, side: Side) -> Encoder:
        key: tuple[int, Side] = (member, "old") if self.one_frame else (member, side)
        if key not in self.encoders:
            if key == (0, "old"):
                found = self.base
            elif key[1] == "old":
                found = self.base.beside(self._of_all_members)
            else:
                found = self.encoder(member, "old").beside(self.shared)
            self.encoders[key] = found
        return self.encoders[key]

    def _of_all_members(self, leaf: Leaf) -> bool:
        """A read that is the same on all members of a group."""
        expr, start = leaf
        window = self.rules["old"].window
        if isinstance(expr, rules.Variable) or over_the_group(expr):
            return True
        if isinstance(expr, rules.Ambient):
            aligned = window.span in ("step", "microbatch") or window.kind == "before"
            aligned = aligned or (start and window.kind in OF_CALLS | {"calls"})
            return (expr.name in ("step", STEP_OF_RUN) and aligned) or (
                expr.name == "epoch" and window.span == "epoch"
            )
        return False

    def shared(self, leaf: Leaf) -> bool:
        """A read that is the same for both rules: a look back is not, where the frames differ."""
        expr, _ = leaf
        if looks_back(expr) or not self.comparable:
            return False
        return len(self._kinds) == 1 or not of_the_window(expr)
