"""Checks that dotted paths name callables that torch has, and are whole."""

from __future__ import annotations

from tspec.diagnostics import did_you_mean
from tspec.resolve import torch_names
from tspec.resolve.findings import Findings
from tspec.source import Source, Span


def check_callable(path: str, place: tuple[Source, Span], findings: Findings) -> None:
    """Report a name under `torch.` that torch lacks, and a package spelt nearly like torch."""
    bare = path.removesuffix(".*")
    root = bare.split(".")[0]
    if root != "torch":
        hint = did_you_mean(root, ["torch"])
        if hint and root != "torch":
            findings.add("TS0112", f"there is no package `{root}`", place, hint=hint)
        check_whole(bare, place, findings)
        return
    is_family = path != bare
    known = (
        torch_names.is_module(bare) or torch_names.is_class(bare)
        if is_family
        else torch_names.is_callable(bare)
    )
    if known:
        return
    what = "module or class" if is_family else "function, class or method"
    message = f"torch {torch_names.version()} has no {what} `{bare}`"
    findings.add("TS0112", message, place, hint=did_you_mean(bare, torch_names.near(bare)))


def check_whole(path: str, place: tuple[Source, Span], findings: Findings) -> None:
    """Warn of a path that begins with a name that scripts give to a module of torch: it fits nothing
    but a package of that name.
    """
    root, _, rest = path.partition(".")
    full = f"{_IMPORTED_AS[root]}.{rest}" if root in _IMPORTED_AS else ""
    if full and torch_names.is_callable(full):
        message = f"names are whole paths: `{path}` is of a package `{root}`, and not of torch"
        hint = f"did you mean `{full}`?"
        findings.add("TS0112", message, place, hint=hint, severity="warning")


_IMPORTED_AS = {"nn": "torch.nn", "F": "torch.nn.functional"}
"""Usual name of an import -> the module."""
