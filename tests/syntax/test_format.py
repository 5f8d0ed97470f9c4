"""The canonical form, case by case."""

import cProfile
from pathlib import Path

import pytest

from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

CASES = sorted((Path(__file__).parents[1] / "cases" / "format").glob("*.case"))


def formatted(text):
    parsed = parse(Source("case.tspec", text))
    assert [found for found in parsed.diagnostics if found.severity == "error"] == []
    return format_file(parsed.file)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path, case_input, check_case):
    text = formatted(case_input(path))
    assert formatted(text) == text
    check_case(path, {"formatted": text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("// alone\n\n\n// twice", "// alone\n\n// twice\n"),
        ("edition 2026", "edition 2026\n"),
        ("edition 2026\r\n\r\nlet a = 1\r\n", "edition 2026\n\nlet a = 1\n"),
        ("edition 2026\tlet a=1 let b=2", "edition 2026\n\nlet a = 1\nlet b = 2\n"),
    ],
)
def test_small_files(text, expected):
    assert format_file(parse(Source("small.tspec", text)).file) == expected


def test_the_work_for_an_element_of_a_list_is_small_and_does_not_grow():
    def calls(count):
        """Calls of Python functions while a list of so many elements is read and formatted."""
        source = Source("a", f"let most = [{', '.join(map(str, range(count)))}]\n")
        profile = cProfile.Profile()
        profile.runcall(lambda: format_file(parse(source).file))
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)
    small, large = calls(1_000), calls(4_000)
    assert large < 4.2 * small
    assert large < 4_000 * 300
