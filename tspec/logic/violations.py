"""Decides whether one rule is violated where another one is not: proved, or shown by a situation.

If sums and products are left open, a situation may be impossible in a job. The caller evaluates it
first, and reports the actual results (`learn`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import z3

from tspec.logic.encode import Encoder
from tspec.logic.encoded import Encoded
from tspec.logic.questions import LIMIT
from tspec.logic.situations import DifferenceAnswer, Known, Side, Situation, SituationRead
from tspec.logic.values import SubjectIdentity, python_value
from tspec.logic.violated import RuleVersions
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule, Vocabulary
from tspec.resolve.program.walk import parts
from tspec.values import STEP_OF_RUN

NO_WORDS = Vocabulary((), (), (), ())


class RulePair:
    """Questions about two versions of a rule.

    Where they are about other occurrences (`comparable` is False), each is asked about alone.
    """

    def __init__(
        self,
        old: Rule,
        new: Rule,
        vocabulary: Vocabulary = NO_WORDS,
        *,
        exact: bool = False,
        limit: int = LIMIT,
    ) -> None:
        """`exact`: float sums and products as IEEE computes them. `limit`: of z3's steps."""
        self.versions = RuleVersions(old, new, vocabulary, exact)
        self.exact = exact
        self.limit = limit
        self._solver = z3.Solver(ctx=self.versions.base.context)
        self._facts: list[z3.BoolRef] = []
        """The known results of sums and products."""
        self._left_out: Mapping[Side, list[z3.BoolRef]] = {"old": [], "new": []}

    @property
    def rules(self) -> Mapping[Side, Rule]:
        """Both rules, with the same variables."""
        return self.versions.rules

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the names in both rules."""
        return self.versions.vocabulary

    @property
    def comparable(self) -> bool:
        """True if both rules are about the same occurrences, except for thinning, filters and
        edges.
        """
        return self.versions.comparable

    @property
    def other_windows(self) -> bool:
        """True if no window of one rule is a window of the other."""
        return self.versions.other_windows

    @property
    def members(self) -> int:
        """The number of members of a group in a situation."""
        return self.versions.members

    # --- questions ------------------------------------------------------------------------------

    def only(self, side: Side) -> DifferenceAnswer:
        """A situation that is violated for this side's rule and not for the other's."""
        other: Side = "new" if side == "old" else "old"
        there = self.versions.violated[side]
        if not self.comparable:
            return _of_one(self._ask([there, *self._left_out[side]]), self.rules[side], side)
        there = z3.And(there, z3.Not(self.versions.violated[other]))
        return self._ask([there, *self._left_out[side]])

    def _ask(self, claims: Sequence[z3.BoolRef]) -> DifferenceAnswer:
        """Ask z3. The situation of a yes has few missing values if the claims permit it."""
        solver = self._solver
        solver.push()
        try:
            solver.set("rlimit", self.limit)
            solver.add(*self.versions.base.axioms, *self.versions.facts, *self._facts, *claims)
            solver.add(*self.versions.base.numbers.lemmas())
            for encoder in {id(each): each for each in self._all_encoders()}.values():
                solver.add(*encoder.over_time())
            result = solver.check()
            if result == z3.unsat:
                return DifferenceAnswer("no")
            if result != z3.sat:
                return DifferenceAnswer("unknown")
            return DifferenceAnswer("yes", self._plainest(solver))
        finally:
            while solver.num_scopes():
                solver.pop()

    def _plainest(self, solver: z3.Solver) -> Situation:
        """A model with as many wishes as there can be; all at once is tried first."""
        model = solver.model()
        wishes = list(self._wishes())
        for wish in [z3.And(*wishes)] if wishes else []:
            solver.push()
            solver.add(wish)
            if solver.check() == z3.sat:
                return self._situation(solver.model())
            solver.pop()
        for wish in () if self.exact else wishes:
            solver.push()
            solver.add(wish)
            if solver.check() == z3.sat:
                model = solver.model()
            else:
                solver.pop()
        return self._situation(model)

    def _all_encoders(self) -> Iterator[Encoder]:
        yield self.versions.base
        yield from self.versions.encoders.values()

    def _wishes(self) -> Iterator[z3.BoolRef]:
        """Preferences: few missing values, windows that end, equal values on all members, late steps."""
        if "lacking" in self.versions.flags:
            yield z3.Not(self.versions.flags["lacking"])
            yield z3.Not(self.versions.flags["unheard"])
        yield from (
            flag for name, flag in self.versions.flags.items() if name.startswith("returns")
        )
        yield from (flag for name, flag in self.versions.flags.items() if name.startswith("there"))
        yield from (met.known for met in self.versions.claims.values())
        leaves = [each for encoder in self._all_encoders() for each in encoder.leaves.items()]
        if leaves:
            yield z3.And(*[leaf.known for _, leaf in leaves])
        yield from (z3.Or(leaf.known, leaf.absent) for _, leaf in leaves)
        yield from self._alike()
        for (expr, start), leaf in leaves:
            if start and isinstance(expr, rules.Ambient):
                later = self.versions.base.leaves.get((expr, False))
                if later is not None:
                    yield leaf.value == later.value
        for (expr, _), leaf in leaves:
            if isinstance(expr, rules.Fold) and expr.name == "count" and expr.scope == "list":
                yield leaf.value >= len(self.rules["old"].subjects)
            if isinstance(expr, rules.Ambient) and expr.name == "step":
                yield leaf.value >= max(3, 1 + self._history())
            if isinstance(expr, rules.Ambient) and expr.name == STEP_OF_RUN:
                yield leaf.value >= 1
        for _, leaf in leaves:
            sort = leaf.value.sort()
            if sort == self.versions.base.sorts.float:
                context = self.versions.base.context
                yield z3.Not(
                    z3.Or(z3.fpIsNaN(leaf.value, context), z3.fpIsInf(leaf.value, context))
                )

    def _alike(self) -> Iterator[z3.BoolRef]:
        """Members read the same, as far as they may."""
        for (member, side), encoder in self.versions.encoders.items():
            if member:
                for leaf, found in encoder.leaves.items():
                    first = self.versions.encoders[0, side].leaves.get(leaf)
                    if first is not None and first is not found:
                        yield first.value == found.value

    def _history(self) -> int:
        """The number of earlier steps that are read."""
        found = [0]
        for rule in self.rules.values():
            for part in parts(rule):
                if isinstance(part, rules.Previous | rules.First):
                    found.append(1)
                elif isinstance(part, rules.Fold) and part.over is not None:
                    found.append(part.over.count)
            if rule.window.every is not None:
                found.append(2 * rule.window.every.count)
        return sum(found)

    def learn(
        self, read: SituationRead, operands: Sequence[tuple[Expr, Known]], result: Known
    ) -> None:
        """Set a sum, product or function of these operands to its true value."""
        encoder = self.versions.encoder(read.member, read.side or "old")
        for each in (encoder, self.versions.encoder(read.member, "new")):
            found = each.encode(read.expr, read.start)
            given = [self._is(each.encode(expr, read.start), value) for expr, value in operands]
            said = self._is(found, result)
            if said is not None and all(fact is not None for fact in given):
                self._facts.append(z3.Implies(z3.And(*given), said))

    def _is(self, encoded: Encoded, value: Known) -> z3.BoolRef | None:
        """The formula that a read is known and has this value; None for opaque values."""
        sorts, sort = self.versions.base.sorts, encoded.value.sort()
        constant: Any = None
        if sort == sorts.bool and isinstance(value, bool):
            constant = z3.BoolVal(value, sorts.context)
        elif sort == sorts.int and isinstance(value, int):
            constant = z3.IntVal(value, sorts.context)
        elif sort == sorts.float and isinstance(value, int | float):
            constant = sorts.number(float(value))
        elif sort == sorts.text and isinstance(value, str):
            constant = z3.StringVal(value, sorts.context)
        return None if constant is None else z3.And(encoded.known, encoded.value == constant)

    @property
    def open(self) -> bool:
        """True if sums or products of floats are left open and could be asked exactly."""
        return not self.exact and self.versions.base.numbers.left_open

    def rule_out(self, situation: Situation, side: Side) -> bool:
        """Exclude a situation for which no job was found. False if there is no other."""
        same = []
        for read, value in situation.reads.items():
            leaf = self.versions.encoder(read.member, read.side or "old").leaves.get(
                (read.expr, read.start)
            )
            said = None if leaf is None else self._is(leaf, value)
            same += [] if said is None else [said]
        for (member, claim, _), met in self.versions.claims.items():
            decided = situation.claims.get(claim)
            if member == 0:
                same.append(met.known if decided is not None else z3.Not(met.known))
                same += [] if decided is None else [met.value == decided]
        if same:
            self._left_out[side].append(z3.Not(z3.And(*same)))
        return bool(same)

    # --- models ---------------------------------------------------------------------------------

    def _situation(self, model: z3.ModelRef) -> Situation:
        reads: dict[SituationRead, Known] = {}
        things: dict[str, SubjectIdentity] = {}
        for (member, side), encoder in self.versions.encoders.items():
            for (expr, start), leaf in encoder.leaves.items():
                own = (
                    None if self.versions.one_frame or self.versions.shared((expr, start)) else side
                )
                if own is None and side == "new":
                    continue
                value = python_value(model, leaf, self.versions.base.sorts, things)
                reads[SituationRead(expr, start, member, own)] = value
        claims = {
            claim: self._decided(model, met)
            for (member, claim, _), met in self.versions.claims.items()
            if member == 0
        }
        ended = [self.versions.flags.get(f"returns {member}") for member in range(self.members)]
        returns = tuple(flag is None or _true(model, flag) for flag in ended)
        return Situation(reads, claims, self.members, returns)

    def _decided(self, model: z3.ModelRef, met: Encoded) -> bool | None:
        return _true(model, met.value) if _true(model, met.known) else None


def _of_one(found: DifferenceAnswer, rule: Rule, side: Side) -> DifferenceAnswer:
    """The reads of one rule in a situation."""
    if found.situation is None:
        return found
    situation = found.situation
    reads = {read: value for read, value in situation.reads.items() if read.side in (None, side)}
    claims = {claim: met for claim, met in situation.claims.items() if claim == rule.expect}
    return replace(found, situation=replace(situation, reads=reads, claims=claims))


def _true(model: z3.ModelRef, what: z3.BoolRef) -> bool:
    return bool(z3.is_true(model.eval(what, model_completion=True)))
