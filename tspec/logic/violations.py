"""Whether one rule calls violated what another does not: proved, or shown by a situation.

A situation is one occurrence of a window for one choice of subjects and group: what is read there,
on each member of the group. Where sums and products are left open, a situation may be one that no
job has: whoever shows it evaluates it first, and tells what the sums really are (`learn`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import z3

from tspec.logic.encode import Encoded, Encoder, Leaf
from tspec.logic.implied import claim_covers, renamed
from tspec.logic.occurrences import (
    looks_back,
    of_the_window,
    other_windows,
    over_the_group,
    same_frame,
    same_occurrences,
    subjects_chosen_by,
    windows_chosen_by,
)
from tspec.logic.questions import LIMIT, Answer
from tspec.logic.since_when import known_from
from tspec.logic.values import Something, Thing, python_value
from tspec.logic.verdict import condition
from tspec.resolve import rules, types
from tspec.resolve.rules import Claim, Contains, Expr, Holds, Ordered, Rule, Vocabulary
from tspec.resolve.walk import parts
from tspec.source import NOWHERE
from tspec.trace.model import Missing

Side = Literal["old", "new"]
Known = bool | int | float | str | Thing | Missing | Something
"""What a read is worth; Missing where it has no value."""

NO_WORDS = Vocabulary((), (), (), ())


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a situation: `start` of the window or its end, which member, whose rule's.

    `side` is None where both rules read the same.
    """

    expr: Expr
    start: bool = False
    member: int = 0
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is read in one occurrence. `claims`: what claims that are no conditions come to."""

    reads: Mapping[Read, Known]
    claims: Mapping[Claim, bool | None]
    members: int
    returns: tuple[bool, ...]
    """For each member, whether the window has an end: a call that returns."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Whether a situation is violated for one rule and not for the other; `no` is proved."""

    answer: Answer
    situation: Situation | None = None


class Pair:
    """Two versions of a rule with the same variables, or one rule and nothing.

    `comparable` is False where they are about other occurrences: then each is asked about alone.
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
        self.rules: Mapping[Side, Rule] = {"old": old, "new": renamed(new, old)}
        self.vocabulary = vocabulary
        self.exact = exact
        self.limit = limit
        self.comparable = same_occurrences(old, self.rules["new"])
        self.other_windows = other_windows(old, new)
        self.one_frame = same_frame(old, self.rules["new"])
        self._two_edges = {old.window.kind, new.window.kind} != {"before"}
        self._base = Encoder(exact=exact)
        self._yes = z3.BoolVal(True, self._base.context)
        self._solver = z3.Solver(ctx=self._base.context)
        self.members = self._members()
        self._encoders: dict[tuple[int, Side], Encoder] = {}
        self._claims: dict[tuple[int, Claim], Encoded] = {}
        self._flags: dict[str, z3.BoolRef] = {}
        self._facts: list[z3.BoolRef] = []
        self._violated = {side: self._rule_violated(side) for side in ("old", "new")}
        self._facts += self._since_when()

    def _members(self) -> int:
        """Two members show what a group can do; a third one may not know its `when`."""
        old, new = self.rules["old"], self.rules["new"]
        if not old.across:
            return 1
        return 2 if (old.when, old.subjects) == (new.when, new.subjects) else 3

    # --- questions ------------------------------------------------------------------------------

    def only(self, side: Side) -> Difference:
        """A situation that is violated for this side's rule and not for the other's."""
        other: Side = "new" if side == "old" else "old"
        there = self._violated[side]
        return self._ask([there, z3.Not(self._violated[other])] if self.comparable else [there])

    def _ask(self, claims: Sequence[z3.BoolRef]) -> Difference:
        """The plainest situation of which the claims are so: few things missing, all in order."""
        solver = self._solver
        solver.push()
        try:
            solver.set("rlimit", self.limit)
            solver.add(*self._base.axioms, *self._facts, *claims)
            solver.add(*self._base.numbers.lemmas())
            for encoder in {id(each): each for each in self._all_encoders()}.values():
                solver.add(*encoder.over_time())
            result = solver.check()
            if result == z3.unsat:
                return Difference("no")
            if result != z3.sat:
                return Difference("unknown")
            return Difference("yes", self._plainest(solver))
        finally:
            while solver.num_scopes():
                solver.pop()

    def _plainest(self, solver: z3.Solver) -> Situation:
        """A model with as many wishes as there can be; all at once is tried first."""
        found = self._situation(solver.model())
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
                found = self._situation(solver.model())
            else:
                solver.pop()
        return found

    def _all_encoders(self) -> Iterator[Encoder]:
        yield self._base
        yield from self._encoders.values()

    def _wishes(self) -> Iterator[z3.BoolRef]:
        """What a situation is like if it can be: late enough, and the same on all members."""
        if "lacking" in self._flags:
            yield z3.Not(self._flags["lacking"])
            yield z3.Not(self._flags["unheard"])
        yield from (flag for name, flag in self._flags.items() if name.startswith("returns"))
        yield from (flag for name, flag in self._flags.items() if name.startswith("there"))
        yield from (met.known for met in self._claims.values())
        leaves = [each for encoder in self._all_encoders() for each in encoder.leaves.items()]
        if leaves:
            yield z3.And(*[leaf.known for _, leaf in leaves])
        yield from (z3.Or(leaf.known, leaf.absent) for _, leaf in leaves)
        yield from self._alike()
        for (expr, _), leaf in leaves:
            if isinstance(expr, rules.Fold) and expr.name == "count" and expr.scope == "list":
                yield leaf.value >= len(self.rules["old"].subjects)
            if isinstance(expr, rules.Ambient) and expr.name == "step":
                yield leaf.value >= max(3, 1 + self._history())
        for _, leaf in leaves:
            sort = leaf.value.sort()
            if sort == self._base.sorts.float:
                context = self._base.context
                yield z3.Not(
                    z3.Or(z3.fpIsNaN(leaf.value, context), z3.fpIsInf(leaf.value, context))
                )

    def _alike(self) -> Iterator[z3.BoolRef]:
        """Members read the same, as far as they may."""
        for (member, side), encoder in self._encoders.items():
            if member:
                for leaf, found in encoder.leaves.items():
                    first = self._encoders[0, side].leaves.get(leaf)
                    if first is not None and first is not found:
                        yield first.value == found.value

    def _history(self) -> int:
        """How many steps before this one are read."""
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

    def learn(self, read: Read, operands: Sequence[tuple[Expr, Known]], result: Known) -> None:
        """What a sum, product or function of these operands really is."""
        encoder = self._encoder(read.member, read.side or "old")
        for each in (encoder, self._encoder(read.member, "new")):
            found = each.encode(read.expr, read.start)
            given = [self._is(each.encode(expr, read.start), value) for expr, value in operands]
            said = self._is(found, result)
            if said is not None and all(fact is not None for fact in given):
                self._facts.append(z3.Implies(z3.And(*given), said))

    def _is(self, encoded: Encoded, value: Known) -> z3.BoolRef | None:
        """That it is known and has this value; None where z3 does not look into it."""
        sorts, sort = self._base.sorts, encoded.value.sort()
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
        """Whether something is left open that could be asked exactly: sums and products of floats."""
        return not self.exact and self._base.numbers.left_open

    def rule_out(self, situation: Situation) -> bool:
        """Ask for another situation than this one, which no job has; False if there is no other."""
        same = []
        for read, value in situation.reads.items():
            leaf = self._encoder(read.member, read.side or "old").leaves.get(
                (read.expr, read.start)
            )
            said = None if leaf is None else self._is(leaf, value)
            same += [] if said is None else [said]
        for (member, claim), met in self._claims.items():
            decided = situation.claims.get(claim)
            if member == 0:
                same.append(met.known if decided is not None else z3.Not(met.known))
                same += [] if decided is None else [met.value == decided]
        if same:
            self._facts.append(z3.Not(z3.And(*same)))
        return bool(same)

    # --- formulas -------------------------------------------------------------------------------

    def _rule_violated(self, side: Side) -> z3.BoolRef:
        rule = self.rules[side]
        edge = rule.window.kind == "before" and self._two_edges
        window: list[z3.BoolRef] = [self._there(rule)]
        window += [self._flag("first")] if rule.window.once else []
        has, dues, failed = [], [], []
        for member in range(self.members):
            encoder = self._encoder(member, side)

            def true(conditions: Iterator[Expr], encoder: Encoder = encoder) -> list[z3.BoolRef]:
                return [encoder.encode(each, edge).true for each in conditions]

            window += true(windows_chosen_by(rule, self.vocabulary))
            has.append(z3.And(self._yes, *true(subjects_chosen_by(rule, self.vocabulary))))
            dues.append(self._due(rule, encoder, member, edge))
            failed.append(self._claim(rule, encoder, member, edge).false)
        if not rule.across:
            return z3.And(*window, has[0], dues[0].true, failed[0])
        return z3.And(*window, self._group_violated(has, dues, failed))

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
        """What looks back is not known in the first steps."""
        found: list[z3.BoolRef] = []
        for (_, side), encoder in list(self._encoders.items()):
            window = self.rules[side].window
            for (expr, start), leaf in list(encoder.leaves.items()):
                first = known_from(expr, window)
                if first is not None and self._is_own(expr, start):
                    step = encoder.encode(rules.Ambient(types.INT, NOWHERE, "step"))
                    found.append(z3.Implies(leaf.known, step.value >= first))
        return found

    def _is_own(self, expr: Expr, start: bool) -> bool:
        """The read is of this side's window: of both where there is one frame."""
        return self.one_frame or not self._of_both_sides((expr, start))

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
        found = self._claimed(rule.expect, member)
        if isinstance(rule.expect, Contains):
            return replace(
                found, known=z3.And(found.known, z3.Or(found.value, self._returns(rule, member)))
            )
        return found

    def _claimed(self, claim: Claim, member: int) -> Encoded:
        """An unknown for a claim that is no condition; a stricter claim is broken where a milder is."""
        key = (member, claim)
        if key not in self._claims:
            name = f"claim {len(self._claims)}"
            known, value = (z3.Bool(f"{name} {what}", self._base.context) for what in "kv")
            found = Encoded(known, z3.BoolVal(False, self._base.context), value)
            for (where, other), met in self._claims.items():
                if where == member and claim_covers(claim, other):
                    self._facts.append(z3.Implies(met.false, found.false))
                if where == member and claim_covers(other, claim):
                    self._facts.append(z3.Implies(found.false, met.false))
            self._claims[key] = found
        return self._claims[key]

    def _returns(self, rule: Rule, member: int) -> z3.BoolRef:
        """Whether the window has an end; an instant after a call is there only if it returned."""
        if rule.window.kind == "before":
            return z3.BoolVal(True, self._base.context)
        return self._flag(f"returns {member}")

    def _there(self, rule: Rule) -> z3.BoolRef:
        """Whether the subjects are there at the edge of the call at which the rule looks for them."""
        kinds = {each.window.kind for each in self.rules.values()}
        if len(kinds) == 1 or not rule.subjects:
            return z3.BoolVal(True, self._base.context)
        return self._flag(f"there {'start' if rule.window.kind == 'before' else 'end'}")

    def _flag(self, name: str) -> z3.BoolRef:
        return self._flags.setdefault(name, z3.Bool(name, self._base.context))

    # --- encoders -------------------------------------------------------------------------------

    def _encoder(self, member: int, side: Side) -> Encoder:
        key: tuple[int, Side] = (member, "old") if self.one_frame else (member, side)
        if key not in self._encoders:
            if key == (0, "old"):
                found = self._base
            elif key[1] == "old":
                found = self._base.beside(self._of_all_members)
            else:
                found = self._encoder(member, "old").beside(self._of_both_sides)
            self._encoders[key] = found
        return self._encoders[key]

    def _of_all_members(self, leaf: Leaf) -> bool:
        """A read that is the same on all members of a group."""
        expr, _ = leaf
        window = self.rules["old"].window
        if isinstance(expr, rules.Variable) or over_the_group(expr):
            return True
        if isinstance(expr, rules.Ambient):
            aligned = window.span in ("step", "microbatch") or window.kind == "before"
            return (expr.name == "step" and aligned) or (
                expr.name == "epoch" and window.span == "epoch"
            )
        return False

    def _of_both_sides(self, leaf: Leaf) -> bool:
        """A read that is the same for both rules: a look back is not, where the frames differ."""
        expr, _ = leaf
        if looks_back(expr) or not self.comparable:
            return False
        kinds = {rule.window.kind for rule in self.rules.values()}
        return len(kinds) == 1 or not of_the_window(expr)

    # --- models ---------------------------------------------------------------------------------

    def _situation(self, model: z3.ModelRef) -> Situation:
        reads: dict[Read, Known] = {}
        things: dict[str, Thing] = {}
        for (member, side), encoder in self._encoders.items():
            for (expr, start), leaf in encoder.leaves.items():
                own = None if self.one_frame or self._of_both_sides((expr, start)) else side
                if own is None and side == "new":
                    continue
                value = python_value(model, leaf, self._base.sorts, things)
                reads[Read(expr, start, member, own)] = value
        claims = {
            claim: self._decided(model, met)
            for (member, claim), met in self._claims.items()
            if member == 0
        }
        ended = [self._flags.get(f"returns {member}") for member in range(self.members)]
        returns = tuple(flag is None or _true(model, flag) for flag in ended)
        return Situation(reads, claims, self.members, returns)

    def _decided(self, model: z3.ModelRef, met: Encoded) -> bool | None:
        return _true(model, met.value) if _true(model, met.known) else None


def _true(model: z3.ModelRef, what: z3.BoolRef) -> bool:
    return bool(z3.is_true(model.eval(what, model_completion=True)))


def never(rule: Rule) -> Rule:
    """The rule with an `expect` that is always met: beside it, a rule is asked about alone."""
    return replace(rule, expect=Holds(rules.Constant(types.BOOL, NOWHERE, True)))
