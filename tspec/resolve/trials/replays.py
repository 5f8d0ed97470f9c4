"""`replay`: fixed and saved state, the length of the run, and claims about the resumed run."""

from __future__ import annotations

from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.lower import lower
from tspec.resolve.expressions.operators import condition
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.program.rules import Expr, Window
from tspec.resolve.program.trials import ReplayDeclaration, Same
from tspec.resolve.trials.runs import check_words, listed, lower_length
from tspec.syntax import nodes

FIXED = ("rng", "kernels", "workers", "batch")
SAVED = ("model", "optimizer", "scheduler", "scaler", "averages", "rng", "sampler", "loader")
COMPARED = (
    "params", "parameters", "buffers", "states", "averages", "generators", "loss", "batches",
)  # fmt: skip
"""The state that `same(...)` compares between the uninterrupted run and the resumed one."""


def lower_replay(node: nodes.Replay, scope: Scope, findings: Findings) -> ReplayDeclaration | None:
    """Type a replay. None if it has errors, which are reported."""
    reporter = Reporter(scope, findings)
    fix: list[str] = []
    save: list[str] = []
    claims: list[Expr | Same] = []
    length, resume = None, None
    for clause in node.clauses:
        match clause:
            case nodes.Fix(names=names):
                check_words(names, FIXED, "fixed", reporter)
                fix += [name.text for name in names]
            case nodes.Save(names=names):
                check_words(names, SAVED, "saved", reporter)
                save += [name.text for name in names]
            case nodes.Run(origin=origin):
                length = clause.length
                if origin is not None:
                    reporter.report("TS0187", "a replay runs the job itself", origin)
            case nodes.Resume():
                resume = clause
            case nodes.ExpectAll():
                found = [_claim(claim, reporter) for claim in clause.claims]
                claims += [claim for claim in found if claim is not None]
    lasts = None if length is None else lower_length(length, reporter)
    steps = length.amount if length is not None and length.unit == "step" else None
    if resume is not None and steps is not None and not 1 <= resume.step < steps:
        message = f"the run of {steps} steps cannot be resumed at {resume.step}"
        reporter.report("TS0189", message, resume, "write a step before its last")
    if save and resume is None:
        message = "what is saved is never resumed"
        reporter.report("TS0189", message, node.name, "add `resume at ...`")
    if reporter.failed:
        return None
    return ReplayDeclaration(
        node.name.text,
        scope.unit.name,
        tuple(fix),
        tuple(save),
        lasts,
        None if resume is None else resume.step,
        tuple(claims),
        scope.source,
        node.name.span,
    )


def _claim(claim: nodes.Expr, reporter: Reporter) -> Expr | Same | None:
    if isinstance(claim, nodes.Call) and nodes.dotted_text(claim.function) == "same":
        inside = claim.arguments[0].value if len(claim.arguments) == 1 else claim
        name = inside.text if isinstance(inside, nodes.Name) else ""
        if name not in COMPARED:
            hint = did_you_mean(name, COMPARED) or f"there are {listed(COMPARED)}"
            reporter.report("TS0186", "two runs cannot be compared in this", inside, hint)
            return None
        return Same(name)
    window = Window("each", span="run")
    try:
        return condition(
            claim, Environment(reporter.scope, reporter.findings, lower, "expect", {}, window)
        )
    except Refused:
        reporter.failed = True
        return None
