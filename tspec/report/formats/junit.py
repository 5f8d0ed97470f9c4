"""Results as JUnit XML: a suite for each spec file, a case for each rule.

A case fails if its rule was violated, is an error if tspec failed, and is skipped, with the reason,
if nothing was tested. A finding without a rule, such as one of a code, is a case of its own. So is
the recording of a rank that ends early, in a suite of its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from tspec.printable import lines
from tspec.report.formats.github import line_of_script
from tspec.report.results import Case, Result, Results, State, case_of, shown
from tspec.trace.model import ranks_in_words

_DOTTED = re.compile(r"[\w.]+")
FAULTS = "tspec"
"""The suite of faults of tspec's own."""


def write(results: Results) -> str:
    """An XML document with a newline at its end."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results.flat():
        found.setdefault(case_of(result), []).append(result)
    cases = [*results.cases, *_without_case(results, found), *_clean_files(results)]
    cases += [_of_recording(each) for each in results.incomplete]
    cases += [Case(f"fault {n}", FAULTS, "error", said) for n, said in enumerate(results.faults, 1)]
    root = ElementTree.Element("testsuites", name="tspec")
    for file in dict.fromkeys(case.file for case in cases):
        of_file = [case for case in cases if case.file == file]
        suite = ElementTree.SubElement(
            root, "testsuite", name=shown(file) if file != FAULTS else FAULTS
        )
        for case in of_file:
            _add_case(suite, case, found.get((case.file, case.rule), []))
        _count(suite, of_file)
    _count(root, cases)
    for node in root.iter():
        _clean(node)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _of_recording(incomplete: Result) -> Case:
    """A recording that ends early is skipped, or an error where it had to be complete."""
    state: State = "error" if incomplete.severity == "error" else "skipped"
    ranks = incomplete.properties["ranks"]
    words = ranks_in_words(range(ranks[0], ranks[-1] + 1))
    return Case(
        f"{words} recorded to the end",
        incomplete.file,
        state,
        f"{incomplete.rule}: {incomplete.message}",
    )


def _without_case(results: Results, found: dict[tuple[str, str], list[Result]]) -> Iterable[Case]:
    known = {(case.file, case.rule) for case in results.cases}
    for (file, rule), of_rule in found.items():
        if (file, rule) not in known:
            yield Case(rule, file, "failed", of_rule[0].message, of_rule[0].line)


def _clean_files(results: Results) -> Iterable[Case]:
    """Cases for checked files without findings: a report without any test counts as a failure."""
    told = {case.file for case in results.cases} | {result.file for result in results.flat()}
    for file in results.files:
        if file not in told:
            yield Case(results.command or "tspec", file, "passed")


def _add_case(suite: ElementTree.Element, case: Case, found: list[Result]) -> None:
    dotted = _DOTTED.fullmatch(case.rule)
    module, _, name = case.rule.rpartition(".") if dotted else ("", "", case.rule)
    node = ElementTree.SubElement(
        suite, "testcase", classname=module or shown(case.file), name=name, file=shown(case.file)
    )
    line = case.line or (found[0].line if found else 0)
    if line:
        node.set("line", str(line))
    if case.properties:
        properties = ElementTree.SubElement(node, "properties")
        for key, value in case.properties.items():
            ElementTree.SubElement(properties, "property", name=key, value=value)
    if case.state == "skipped":
        ElementTree.SubElement(node, "skipped", message=case.message)
    elif case.state != "passed":
        said = case.message or (found[0].message if found else "")
        kind = found[0].severity if found else case.state
        tag = "failure" if case.state == "failed" else "error"
        element = ElementTree.SubElement(node, tag, message=said, type=kind)
        element.text = "\n\n".join(_body(each) for each in found)


def _body(result: Result) -> str:
    if result.text:
        return result.text
    where = f"{shown(result.file)}:{result.line}"
    parts = (
        where,
        result.in_run,
        line_of_script(result),
        result.message,
        result.explanation,
        result.help,
    )
    return "\n".join(part for part in parts if part)


def _count(node: ElementTree.Element, cases: list[Case]) -> None:
    states = [case.state for case in cases]
    node.set("tests", str(len(cases)))
    node.set("failures", str(states.count("failed")))
    node.set("errors", str(states.count("error")))
    node.set("skipped", str(states.count("skipped")))


def _clean(node: ElementTree.Element) -> None:
    """Escape characters that cannot be printed. Names of tests may hold any character, and XML
    cannot hold some of them.
    """
    for key, value in node.attrib.items():
        node.set(key, lines(value))
    if node.text:
        node.text = lines(node.text)
