"""The place of each key and value of a TOML text: what stands there reads as that value."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tspec.config.places import places

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "",
    "# nothing\n",
    'a = 1\nb.c = "x#y" # z\n"d e" = \'f\'\n',
    "[a.b]\nc = [1, [2, 3],\n  # four\n  { d = true, e.f = 1979-05-27T07:32:00Z },\n]\n",
    '[[a]]\nb = 1\n[[a]]\nb = """\ntwo\n\\"""x"""\n[a.c]\nd = """"quoted""""\n[[a.e]]\nf = 1\n',
    'a = [] \nb = {}\nc = { }\nd = [ [ ], [1 ,2 , ] ]\n[ "x.y" . z ]\nv = -1_000.5e3\n',
    "s = '''it's''''\nt = ''''''\n[e]\n",
    (ROOT / "pyproject.toml").read_text(),
]


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    found = [(at, value)] if at else []
    if isinstance(value, dict):
        found += [leaf for key, each in value.items() for leaf in leaves(each, (*at, key))]
    elif isinstance(value, list):
        found += [leaf for n, each in enumerate(value) for leaf in leaves(each, (*at, n))]
    return found


def check(text: str) -> None:
    content = tomllib.loads(text)
    found = places(text)
    assert set(found) == {at for at, _ in leaves(content)}
    for at, value in leaves(content):
        place = found[at]
        assert text[place.key.start : place.key.end]
        if not isinstance(value, dict | list):
            shown = text[place.value.start : place.value.end]
            assert tomllib.loads(f"x = {shown}")["x"] == value
        if isinstance(at[-1], str) and not isinstance(value, dict | list):
            key = text[place.key.start : place.key.end]
            assert next(iter(tomllib.loads(f"{key} = 1"))) in at


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_entry_is_found(text: str, end: str) -> None:
    check(text.replace("\n", end))


keys = st.sampled_from(["a", "b-c", "_1", '"x y"', '"é.\\t"', "'q'"])
spaces = st.sampled_from(["", " ", "\t"])
scalars = st.sampled_from(
    [
        "1",
        "-0.5",
        "true",
        '"#"',
        '"]"',
        "'}'",
        '"""\n,"""',
        "'''a\nb'''",
        "1979-05-27 07:32:00",
        '"\\""',
    ]
)


def collections(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3).map(lambda items: "[ " + " ,# c\n ".join(items) + " ]")
    tables = st.lists(inner, max_size=3).map(
        lambda items: f"{{{', '.join(f'k{n} = {item}' for n, item in enumerate(items))}}}"
    )
    return lists | tables


values = st.recursive(scalars, collections, max_leaves=6)
entries = st.lists(st.tuples(keys, spaces, values), max_size=3, unique_by=lambda entry: entry[0])


@given(st.lists(st.tuples(entries, st.booleans()), max_size=3))
def test_each_entry_of_a_random_text_is_found(tables: list[Any]) -> None:
    lines = []
    for number, (of_table, several) in enumerate(tables):
        lines.append(f"[[t.u{number}]]" if several else f"[ t.v{number} ] # head")
        lines += [f"{key}{space}={space}{value}{space}# end" for key, space, value in of_table]
    check("\n".join(lines))
