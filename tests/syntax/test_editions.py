"""Editions: a file that names none, and a migration from an edition that a test makes up."""

from dataclasses import replace

import pytest
from hypothesis import given

from tests.syntax import trees
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.editions import HISTORY, NEWEST, EditionDefinition, Migration, upgrade
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse


def without_module(file: nodes.File) -> nodes.File:
    return replace(file, module=None)


NEXT = EditionDefinition(NEWEST + 1, (Migration("the module line goes", without_module),))


@pytest.mark.slow
@given(trees.files)
def test_a_file_of_the_newest_edition_stays(file):
    assert upgrade(file).file == file
    assert upgrade(file).done == ()


@pytest.mark.slow
@given(trees.files)
def test_a_file_that_names_no_edition_is_written_with_one(file):
    upgraded = upgrade(replace(file, edition=None))
    assert upgraded.file == replace(file, edition=nodes.Edition(NEWEST))
    assert parse(Source("a", format_file(upgraded.file))).file == upgraded.file


def test_migrations_are_applied_to_older_files_and_said():
    old = parse(Source("a", "edition 2026\n\nmodule a\n\nlet x = 1\n")).file
    upgraded = upgrade(old, (*HISTORY, NEXT))
    assert format_file(upgraded.file) == f"edition {NEXT.year}\n\nlet x = 1\n"
    assert upgraded.done == ("the module line goes",)
    assert upgrade(upgraded.file, (*HISTORY, NEXT)).file is upgraded.file
