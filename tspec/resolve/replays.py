"""`replay`: what is fixed, what is saved, how long is run, and what must be the same then."""

from __future__ import annotations

from tspec.diagnostics import did_you_mean
from tspec.resolve import rules
from tspec.resolve.declared import ReplayDeclaration
from tspec.resolve.equivalences import check_length, check_words
from tspec.resolve.expressions import lower
from tspec.resolve.findings import Findings
from tspec.resolve.meshes import Reporter
from tspec.resolve.operators import condition
from tspec.resolve.place import Place, Refused
from tspec.resolve.scope import Scope
from tspec.syntax import nodes

FIXED = ("rng", "kernels", "workers", "batch")
SAVED = ("model", "optimizer", "scheduler", "scaler", "averages", "rng", "sampler", "loader")
COMPARED = (
    "params", "parameters", "buffers", "states", "averages", "generators", "loss", "batches",
)  # fmt: skip
"""What `same(...)` compares between the straight run and the resumed one."""


def lower_replay(node: nodes.Replay, scope: Scope, findings: Findings) -> ReplayDeclaration | None:
    """The replay, or None where something is wrong, which is reported."""
    reporter = Reporter(scope, findings)
    steps: int | float | None = None
    for clause in node.clauses:
        match clause:
            case nodes.Fix(names=names):
                check_words(names, FIXED, "fixed", reporter)
            case nodes.Save(names=names):
                check_words(names, SAVED, "saved", reporter)
            case nodes.Run(length=length, origin=origin):
                check_length(length, reporter)
                steps = length.amount if length.unit == "step" else None
                if origin is not None:
                    reporter.report("TS0187", "a replay runs the job itself", origin)
            case nodes.Resume(step=step):
                if steps is not None and not 1 <= step < steps:
                    message = f"the run of {steps} steps cannot be resumed at {step}"
                    reporter.report("TS0189", message, clause, "write a step before its last")
            case nodes.ExpectAll(claims=claims):
                for claim in claims:
                    _check_claim(claim, reporter, findings)
    resumed = any(isinstance(clause, nodes.Resume) for clause in node.clauses)
    if any(isinstance(clause, nodes.Save) for clause in node.clauses) and not resumed:
        reporter.report(
            "TS0189", "what is saved is never resumed", node.name, "add `resume at ...`"
        )
    if reporter.failed:
        return None
    return ReplayDeclaration(node.name.text, scope.unit.name, scope.source, node)


def _check_claim(claim: nodes.Expr, reporter: Reporter, findings: Findings) -> None:
    if isinstance(claim, nodes.Call) and nodes.dotted_text(claim.function) == "same":
        inside = claim.arguments[0].value if len(claim.arguments) == 1 else claim
        name = inside.text if isinstance(inside, nodes.Name) else ""
        if name not in COMPARED:
            hint = did_you_mean(name, COMPARED)
            hint = hint or f"there are {', '.join(f'`{each}`' for each in COMPARED)}"
            reporter.report("TS0186", "this is nothing that two runs have", inside, hint)
        return
    window = rules.Window("each", span="run")
    try:
        condition(claim, Place(reporter.scope, findings, lower, "expect", {}, window))
    except Refused:
        reporter.failed = True
