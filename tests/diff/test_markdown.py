"""A comment on a pull request, read by a parser of CommonMark: texts of a spec are code, and nothing else."""

import html
import re

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from tests.faults.hostile import HOSTILE, texts, unprintable
from tspec.diff.changes import ChangedPart, Changes, DeclarationChange, DeclarationText
from tspec.diff.formats.markdown import as_markdown
from tspec.diff.witness.witness import Witness

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
BLOCKS = {
    "heading_open", "heading_close", "inline", "table_open", "table_close", "thead_open",
    "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close",
    "td_open", "td_close", "html_block", "paragraph_open", "paragraph_close", "bullet_list_open",
    "bullet_list_close", "list_item_open", "list_item_close", "fence",
}  # fmt: skip
INLINES = {"text", "text_special", "code_inline", "html_inline", "strong_open", "strong_close"}
SUMMARY = re.compile(r"<details>\n<summary>loosened: <code>([^<>]*)</code></summary>\n")


def change(text):
    """A change of which all that comes from a spec is this text."""
    old = DeclarationText(f"// {text}\ninvariant a {{ }}", f"{text}.tspec", 1)
    new = DeclarationText(f"invariant a {{\n  {text}\n}}", f"{text}.tspec", 2)
    part = ChangedPart("when", "loosened", text, text)
    witness = Witness(((text, text),), "violated", "holds", True, (text,))
    return DeclarationChange("rule", text, "loosened", old, new, text, (part,), (witness,), (text,))


def read(text, *changes):
    """The blocks and the parts of lines of a comment."""
    blocks = READER.parse(text)
    return blocks, [part for block in blocks for part in block.children or ()]


def check(text):
    written = as_markdown(Changes((change(text), change(text)), 0))
    written.encode()
    assert unprintable(written) == set()
    blocks, parts = read(written)
    assert {block.type for block in blocks} <= BLOCKS
    assert {part.type for part in parts} <= INLINES
    assert [block.tag for block in blocks if block.type == "heading_open"] == ["h3"]
    rows = [block for block in blocks if block.type == "tr_open"]
    cells = [block for block in blocks if block.type in ("td_open", "th_open")]
    assert (len(rows), len(cells)) == (3, 12)
    assert {part.content for part in parts if part.type == "html_inline"} <= {
        "<br>", "<code>", "</code>",
    }  # fmt: skip
    blocks_of_html = [block.content for block in blocks if block.type == "html_block"]
    assert len(blocks_of_html) == 4
    assert all(SUMMARY.fullmatch(each) for each in blocks_of_html[0::2])
    assert blocks_of_html[1::2] == ["</details>\n"] * 2
    fences = [block for block in blocks if block.type == "fence"]
    assert [fence.info for fence in fences] == ["diff", "diff"]
    return blocks_of_html[0], parts, fences[0].content


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_code(text):
    check(text)


@given(texts)
def test_any_text_is_code(text):
    check(text)


def test_what_can_be_printed_is_read_as_it_is():
    text = "``` `x` | <b> & [a](b) *c* @all"
    head, parts, patch = check(text)
    assert html.unescape(SUMMARY.fullmatch(head)[1]) == f"{text} (was {text})"
    code = [part.content for part in parts if part.type == "code_inline"]
    assert f"{text} = {text}: old violated, new holds" in code
    assert text in code
    assert f"-// {text}\n" in patch


def test_what_cannot_be_printed_is_an_escape():
    _, parts, patch = check("a\u2028# b\u202e")
    assert "-// a\\u2028# b\\u202e\n" in patch
    assert "a\\u2028# b\\u202e" in [part.content for part in parts]
