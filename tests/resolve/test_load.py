"""Which files make a program: folders, packs, shipped modules, the project's own."""

from pathlib import Path

import pytest

from tspec.diagnostics import render
from tspec.resolve import load, load_text
from tspec.resources import shipped

STDLIB = sorted(shipped("stdlib").glob("*.tspec"))
PACKS = sorted(path for path in shipped("specs").iterdir() if path.is_dir())
RULE = "invariant {} {{\n  each step\n  expect loss < 1\n  else warn\n}}\n"


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("edition 2026\n\n" + text)
    return path


def names(loaded):
    assert loaded.diagnostics == ()
    return [rule.qualified for rule in loaded.program.rules]


@pytest.mark.parametrize("path", [*STDLIB, *PACKS], ids=lambda path: path.stem)
def test_all_that_ships_is_right(path):
    assert load([path]).diagnostics == ()


def test_all_that_ships_goes_together():
    loaded = load([shipped("stdlib"), shipped("specs")])
    assert loaded.diagnostics == ()
    assert len(loaded.program.rules) == len(set(names(loaded))) > 120


def test_rules_of_used_modules_are_not_asked_for(tmp_path):
    write(tmp_path, "base.tspec", "module base\n\nuse std.torch\n\n" + RULE.format("first"))
    own = write(
        tmp_path, "own.tspec", "module own\n\nuse std.torch\nuse base\n\n" + RULE.format("second")
    )
    assert names(load([own], project=tmp_path)) == ["own.second"]
    assert names(load([tmp_path], project=tmp_path)) == ["base.first", "own.second"]


def test_a_pack_asks_for_the_rules_that_it_uses(tmp_path):
    write(tmp_path, "base.tspec", "module base\n\nuse std.torch\n\n" + RULE.format("first"))
    write(tmp_path, "more.tspec", "module more\n\nuse base\n")
    pack = write(tmp_path, "pack.tspec", "module pack\n\nuse more\n")
    assert names(load([pack], project=tmp_path)) == ["base.first"]


def test_a_file_that_only_extends_asks_for_the_rules_that_it_extends(tmp_path):
    own = write(
        tmp_path, "own.tspec", "use std.moe\n\nextend event capacity = call model.capacity\n"
    )
    assert "std.moe.capacities_agree" in names(load([own], project=tmp_path))


def test_shipped_modules_and_packs_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hygiene = names(load([Path("std.hygiene")]))
    assert "std.hygiene.gradients_are_cleared" in hygiene
    assert set(hygiene) < set(names(load([Path("specs/essentials")])))


def test_what_exists_comes_before_what_is_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "specs/essentials/own.tspec", "use std.torch\n\n" + RULE.format("own"))
    assert names(load([Path("specs/essentials")])) == ["own"]


def test_modules_are_found_by_place_and_by_their_module_line(tmp_path):
    write(tmp_path, "checks/base.tspec", "module checks.base\n\nuse std.torch\n\nlet most = 3\n")
    write(tmp_path, "other/file.tspec", "module checks.elsewhere\n\nlet least = 1\n")
    own = write(
        tmp_path,
        "own.tspec",
        "use checks.base\nuse checks.elsewhere as low\n\n"
        "invariant it {\n  each step\n  expect low.least < loss < most\n}\n",
    )
    assert names(load([own], project=tmp_path)) == ["it"]


def test_the_project_is_where_its_mark_is(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    write(tmp_path, "rules/base.tspec", "module rules.base\n\nuse std.torch\n")
    own = write(tmp_path, "deep/below/own.tspec", "use rules.base\n\n" + RULE.format("own"))
    assert names(load([own])) == ["own"]


def test_a_file_asked_for_twice_counts_once(tmp_path):
    own = write(tmp_path, "own.tspec", "use std.torch\n\n" + RULE.format("own"))
    assert names(load([own, tmp_path, own])) == ["own"]


def test_a_text_needs_no_file():
    assert names(load_text("edition 2026\n\nuse std.torch\n\n" + RULE.format("it"))) == ["it"]


def test_bytes_that_are_no_text_are_one_error(tmp_path):
    path = tmp_path / "broken.tspec"
    path.write_bytes(b"edition 2026\n\n\xff\xfe\x00invariant\n" + bytes(range(256)))
    loaded = load([path])
    assert loaded.program is None
    [found] = loaded.diagnostics
    assert found.message == f"cannot read `{path}`: it is no UTF-8 text (byte 14)"
    assert "-->" not in render(found)


@pytest.mark.parametrize(
    "text", ["}}}\nfoo bar\n!!\n", "\x7fELF\x00\x01\n\x02\n", '{"a": 1,\n"b": []}\n']
)
def test_a_text_of_another_kind_is_one_error(text):
    loaded = load_text(text)
    assert loaded.program is None
    assert len(loaded.diagnostics) == 1


def test_other_declarations_are_kept(tmp_path):
    text = (
        "mesh small {\n  order: tp, dp\n  tp: 2\n  dp: 3\n}\n\n"
        "dims small {\n  hidden: 4 * heads\n  heads: 2\n}\n\n"
        'layout small on small {\n  param "*": [hidden / tp] when flag\n}\n\n'
        "equivalence same {\n  layout small\n  reference { tp: 1 }\n  candidate { flag: true }\n"
        "  run 1 step\n  compare params\n  within 0\n}\n"
    )
    program = load([write(tmp_path, "own.tspec", text)]).program
    (mesh,) = program.meshes
    assert (mesh.axes, mesh.world) == ((("tp", 2), ("dp", 3)), 6)
    assert dict(program.dims[0].sizes) == {"hidden": 8, "heads": 2}
    assert program.layouts[0].mesh == mesh
    assert program.layouts[0].flags == ("flag",)
    assert program.equivalences[0].layout == program.layouts[0]


def test_a_let_may_name_the_one_of_its_name_in_another_module(tmp_path):
    write(tmp_path, "limits.tspec", "module limits\nlet most = 10\n")
    text = "module own\nuse limits as other\nlet most = other.most + 1\n"
    loaded = load([write(tmp_path, "own.tspec", text)], project=tmp_path)
    assert [found.message for found in loaded.diagnostics] == []
