"""`// tspec: allow TS0402 because …`: comments that suppress findings.

Above a rule, the comment covers the rule. Above a clause or at the end of a line, it covers the
code that it is attached to. Without a reason it covers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tspec.diagnostics import Diagnostic, did_you_mean
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintFinding, SuggestedFix
from tspec.lint.registry import ALLOWANCES, RULES
from tspec.resolve.outline import SpannedComment
from tspec.source import Source, Span

UNUSED, REASONLESS, UNKNOWN = ALLOWANCES

_COMMENT = re.compile(r"//\s*tspec:\s*(.*)$")
_ALLOW = re.compile(r"allow\s+(?P<codes>[\w\s,]*?)\s*(?:\bbecause\b\s*(?P<reason>.*))?$")
_CODE = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment that allows findings: their codes, and the lines of its file."""

    source: Source
    span: Span
    codes: tuple[tuple[str, Span], ...]
    reason: str
    first: int
    last: int
    wrong: str = ""
    """Why the comment cannot be read as an allowance, or empty."""

    def covers(self, finding: LintFinding) -> bool:
        """True if the comment suppresses a finding."""
        found = finding.diagnostic
        if found.source.path != self.source.path or found.code not in dict(self.codes):
            return False
        return self.first <= found.source.position(found.span.start).line <= self.last


def sift(found: Iterable[LintFinding], checked: CheckedProgram) -> Iterator[LintFinding]:
    """The findings that no comment allows, and findings about the comments."""
    settings = checked.settings
    read = [_read(comment, source) for source, comment in checked.comments]
    allowances = [each for each in read if each is not None]
    known = {rule.code for rule in RULES}
    used: set[tuple[Span, str, str]] = set()
    for finding in found:
        covering = [each for each in allowances if each.reason and each.covers(finding)]
        used.update((each.span, each.source.path, finding.code) for each in covering)
        if not covering:
            yield finding
    for each in allowances:
        path = each.source.path
        looked_for = {c for c in known if settings.selects(c) and not settings.ignores(c, path)}
        for finding in _about(each, known, used, looked_for):
            if settings.selects(finding.code) and not settings.ignores(finding.code, path):
                yield finding


def _about(
    each: Suppression,
    known: set[str],
    used: set[tuple[Span, str, str]],
    looked_for: set[str],
) -> Iterator[LintFinding]:
    if each.wrong:
        hint = "write `// tspec: allow TS0402 because …`"
        yield _finding(UNKNOWN, each.wrong, each, each.span, hint)
        return
    for code, span in each.codes:
        if code not in known:
            hint = did_you_mean(code, known) or "`tspec explain` knows what can be allowed"
            yield _finding(UNKNOWN, f"no finding of lint has the code `{code}`", each, span, hint)
    if not each.reason:
        message = "this has no reason, so it allows nothing"
        yield _finding(REASONLESS, message, each, each.span, "go on with `because …`")
        return
    stale = [
        (code, span)
        for code, span in each.codes
        if code in looked_for and (each.span, each.source.path, code) not in used
    ]
    for code, span in stale:
        fix = _without(each, [code for code, _ in stale])
        yield _finding(
            UNUSED, f"`{code}` is allowed and not found here", each, span, "delete it", fix
        )


def _without(each: Suppression, stale: list[str]) -> SuggestedFix:
    """Shorten a comment by the codes that it no longer needs to allow, or delete it."""
    left = [code for code, _ in each.codes if code not in stale]
    if left:
        text = f"// tspec: allow {', '.join(left)} because {each.reason}"
        return SuggestedFix("shorten the comment", (Edit(each.span, text),))
    start = each.span.start
    text = each.source.text
    before = text.rfind("\n", 0, start) + 1
    if text[before:start].strip():
        kept = len(text[before:start].rstrip())
        return SuggestedFix("delete the comment", (Edit(Span(before + kept, each.span.end), ""),))
    end = each.span.end + 1 if text[each.span.end : each.span.end + 1] == "\n" else each.span.end
    return SuggestedFix("delete the comment", (Edit(Span(before, end), ""),))


def _finding(
    what: tuple[str, str],
    message: str,
    each: Suppression,
    span: Span,
    hint: str | None,
    fix: SuggestedFix | None = None,
) -> LintFinding:
    code, name = what
    diagnostic = Diagnostic(code, message, span, each.source, (), hint, "warning")
    return LintFinding(diagnostic, name, fix)


# --- reading comments ---------------------------------------------------------------------------


def _read(comment: SpannedComment, source: Source) -> Suppression | None:
    match = _COMMENT.match(comment.text)
    if match is None:
        return None
    about = comment.about
    first = source.position(about.start).line
    last = source.position(max(about.end - 1, about.start)).line
    span = Span(comment.span.start, comment.span.start + len(comment.text))
    allowed = _ALLOW.match(match[1])
    if allowed is None or not allowed["codes"]:
        wrong = f"`{match[1]}` is no instruction for tspec"
        return Suppression(source, span, (), "", first, last, wrong)
    begin = span.start + match.start(1) + allowed.start("codes")
    codes = tuple(
        (code[0].upper(), Span(begin + code.start(), begin + code.end()))
        for code in _CODE.finditer(allowed["codes"])
    )
    reason = (allowed["reason"] or "").strip(" .…")
    return Suppression(
        source, span, codes, (allowed["reason"] or "").strip() if reason else "", first, last
    )
