"""Nodes of trials: `equivalence`, `replay` and `test`."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.syntax.declarations import Clause, Declaration
from tspec.syntax.expressions import Expr, Node, Quantity, String, Word

# Equivalence


@dataclass(frozen=True, slots=True)
class Setting(Node):
    """`name: value` in a reference or candidate."""

    name: Word
    value: Expr


@dataclass(frozen=True, slots=True)
class UsesLayout(Clause):
    """`layout name`."""

    name: Word


@dataclass(frozen=True, slots=True)
class Reference(Clause):
    """`reference { settings }`."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Candidate(Clause):
    """`candidate { settings }`; settings that it leaves out are as in the mesh or the reference."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Sweep(Clause):
    """`sweep name in values`."""

    name: Word
    values: Expr


@dataclass(frozen=True, slots=True)
class Require(Clause):
    """`require condition`: only settings that satisfy it."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class EqualWhen(Clause):
    """`equal when condition`: which pairs of settings have to agree."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Cover(Clause):
    """`cover all`, `cover pairs` or `cover triples`."""

    coverage: Word


@dataclass(frozen=True, slots=True)
class Run(Clause):
    """`run 1 step from generated(seed: 1)`."""

    length: Quantity
    origin: Expr | None = None


@dataclass(frozen=True, slots=True)
class GeneratedInput(Clause):
    """`input "Model[labels]" from below(vocab)`: an input of the model is made of generated numbers."""

    name: String
    numbers: Expr


@dataclass(frozen=True, slots=True)
class Compare(Clause):
    """`compare outputs, params`."""

    kinds: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Within(Clause):
    """`within tolerance`."""

    tolerance: Expr


@dataclass(frozen=True, slots=True)
class Store(Clause):
    """`store: sketch`: the form in which each tensor is kept."""

    what: Word


@dataclass(frozen=True, slots=True)
class Localize(Clause):
    """`localize by rewriting inputs`."""


@dataclass(frozen=True, slots=True)
class Equivalence(Declaration):
    """Two ways to run a training step, or a family of them, that must agree.

    Its clauses stand in the order of the classes above.
    """

    name: Word
    clauses: tuple[Clause, ...]


# Replay


@dataclass(frozen=True, slots=True)
class Fix(Clause):
    """`fix rng, kernels`: the sources of randomness that are made deterministic."""

    names: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Save(Clause):
    """`save model, optimizer`: the contents of a checkpoint."""

    names: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Resume(Clause):
    """`resume at 10`: the step after which the run is stopped and resumed."""

    step: int


@dataclass(frozen=True, slots=True)
class ExpectAll(Clause):
    """`expect a, b`: each of them."""

    claims: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Replay(Declaration):
    """A run that, stopped and resumed, must be the same run: Fix, Save, Run, Resume, ExpectAll."""

    name: Word
    clauses: tuple[Fix | Save | Run | Resume | ExpectAll, ...]


# Tests


@dataclass(frozen=True, slots=True)
class UsesTrace(Clause):
    """`trace "path"`: a recorded run, relative to the file."""

    path: String


@dataclass(frozen=True, slots=True)
class Happening(Node):
    """A call that a scripted rank makes, with the events inside of it, if any are given."""

    event: Expr
    inside: tuple[Happening | Change | RankScript, ...] = ()


@dataclass(frozen=True, slots=True)
class Change(Node):
    """`parameter("head.weight").grad = nan`: a state that is so from here on."""

    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class RankScript(Node):
    """`rank 1 { ... }`: the events on these ranks only."""

    ranks: tuple[int, ...]
    inside: tuple[Happening | Change | RankScript, ...]


@dataclass(frozen=True, slots=True)
class StepScript(Node):
    """`step 2 { ... }` or `step 2..50 { ... }`, both ends included."""

    first: int
    last: int
    inside: tuple[Happening | Change | RankScript, ...]


@dataclass(frozen=True, slots=True)
class Events(Clause):
    """`events on 2 ranks { steps }`, `events on mesh gpt { steps }` or `events { steps }`."""

    steps: tuple[StepScript, ...]
    ranks: int | None = None
    mesh: Word | None = None


@dataclass(frozen=True, slots=True)
class At(Node):
    """`at step 2` or `at step 2..5`, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Violates(Clause):
    """`violates rule at step 2 on rank 0 for "head.weight"`."""

    rule: Word
    at: At | None = None
    rank: int | None = None
    subject: String | None = None


@dataclass(frozen=True, slots=True)
class Passes(Clause):
    """`passes rule`, or `passes all others` with `rule` None: no other rule in use is violated."""

    rule: Word | None


@dataclass(frozen=True, slots=True)
class Test(Declaration):
    """`test "what" { trace or events, then expected violations and passes }`."""

    __test__ = False  # pytest: this is no test class

    title: String
    clauses: tuple[UsesTrace | Events | Violates | Passes, ...]
