"""The configuration of a project: what is read, from where, and what is said where it is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tspec
from tests.config.test_places import values
from tspec.config import model
from tspec.config.model import Config, FmtSection, LintSection
from tspec.config.read import KEYS, find, read
from tspec.diagnostics import WIDTH, render
from tspec.explain import codes, explain

ROOT = Path(__file__).resolve().parents[2]
ROOM = Path(tspec.__file__).parent
CASES = sorted((ROOT / "tests" / "cases" / "config").glob("*.case"))
CODES = [code for code in codes() if "TS0500" <= code <= "TS0549"]
FENCE = re.compile(r"```toml (bad|good)(?: (\S+))?\n(.*?)```", re.DOTALL)
WHOLE = """specs = ["specs", "std.hygiene"]
output-format = "github"
baseline = "accepted.json"

[rules]
"std.health.loss_does_not_spike" = "off"
std.health.gradients_are_finite = "stop"
"std.advice.*" = "warn"

[check]
require-complete = true

[run]
fail-on = "warning"
require-instances = true
check-steps = "25/500"

[lint]
select = ["TS04"]
ignore = ["TS0402", "TS0403"]
passes = 20
collectives = 2.5

[lint.per-file-ignores]
"specs/drafts/*" = ["TS0404"]

[fmt]
exclude = ["runs/*"]

[test]
paths = ["specs"]
fail-under = 90
"""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path, case_input, check_case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *others = re.split(r"^--- ", case_input(path), flags=re.MULTILINE)
    Path("tspec.toml").write_text(first)
    for other in others:
        name, _, text = other.partition("\n")
        Path(name).write_text(text)
    rendered = [render(found) for found in read(find(Path.cwd())).diagnostics]
    assert rendered
    assert all(len(line) <= WIDTH for text in rendered for line in text.splitlines())
    check_case(path, {"diagnostics": "\n\n".join(rendered)})


def test_every_code_is_used_has_a_case_and_a_page(tmp_path, monkeypatch):
    used = set(re.findall(r'"(TS05\d\d)"', (ROOM / "config" / "read.py").read_text()))
    assert sorted(used) == CODES
    shown = "".join(path.read_text() for path in CASES)
    assert [code for code in CODES if f"[{code}]" not in shown] == []


@pytest.mark.parametrize("code", CODES)
def test_the_examples_of_its_page_are_right(code, tmp_path):
    title = explain(code).partition("\n")[0]
    assert re.fullmatch(rf"# {code}: [a-z`].*[^.]", title)
    kinds = {kind for kind, _, _ in FENCE.findall(explain(code))}
    assert kinds == {"bad", "good"}
    for kind in kinds:
        folder = tmp_path / kind
        folder.mkdir()
        for each, name, text in FENCE.findall(explain(code)):
            if each == kind:
                (folder / (name or "tspec.toml")).write_text(text)
        found = {diagnostic.code for diagnostic in read(find(folder)).diagnostics}
        assert found == ({code} if kind == "bad" else set())


def config_of(folder: Path) -> Config:
    found = read(find(folder))
    assert found.diagnostics == ()
    return found.config


def check_whole(config: Config) -> None:
    assert config.specs == ("specs", "std.hygiene")
    assert [(s.rule, s.action) for s in config.rules] == [
        ("std.health.loss_does_not_spike", "off"),
        ("std.health.gradients_are_finite", "stop"),
        ("std.advice.*", "warn"),
    ]
    assert (config.output_format, config.baseline) == ("github", "accepted.json")
    assert config.check == model.CheckSection(require_complete=True)
    assert config.run == model.RunSection("warning", True, "25/500")
    assert config.lint == LintSection(
        ("TS04",), ("TS0402", "TS0403"), {"specs/drafts/*": ("TS0404",)}, 20.0, 2.5
    )
    assert config.fmt == FmtSection(("runs/*",))
    assert config.test == model.TestSection(("specs",), 90.0)


def test_all_keys_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tspec.toml").write_text(WHOLE)
    config = config_of(tmp_path)
    check_whole(config)
    assert [s.where for s in config.rules] == ["tspec.toml:6", "tspec.toml:7", "tspec.toml:8"]
    assert set(KEYS) <= set(re.findall(r"^\[?([\w-]+)", WHOLE, re.MULTILINE))


def test_pyproject_says_the_same_in_a_table(tmp_path):
    text = re.sub(r"^\[", "[tool.tspec.", WHOLE, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "a"\n\n[tool.tspec]\n{text}')
    check_whole(config_of(tmp_path))


def test_the_nearest_folder_above_counts(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "tspec.toml").write_text('specs = ["far"]')
    assert config_of(inner).specs == ("far",)
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "no table of ours"\n')
    assert config_of(inner).specs == ("far",)
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.tspec]\nspecs = ["near"]\n')
    assert config_of(inner).specs == ("near",)
    assert config_of(inner).root == tmp_path / "a"


def test_two_in_one_folder_are_an_error(tmp_path):
    (tmp_path / "tspec.toml").write_text('specs = ["a"]')
    (tmp_path / "pyproject.toml").write_text('[tool.tspec]\nspecs = ["b"]\n')
    [found] = read(find(tmp_path)).diagnostics
    assert found.code == "TS0504"
    assert "2 | " not in render(found)
    assert "1 | [tool.tspec]" in render(found)


def test_a_pyproject_that_is_no_toml_is_reported_only_if_it_is_ours(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.tspec]\nspecs = \n")
    assert [d.code for d in read(find(tmp_path)).diagnostics] == ["TS0500"]
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nspecs = \n")
    assert find(tmp_path) == () or tmp_path not in {file.parent for file in find(tmp_path)}


def test_a_table_that_is_none(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool]\ntspec = 3\n")
    [found] = read(find(tmp_path)).diagnostics
    assert (found.code, found.message) == ("TS0502", "`tspec` takes a table")


def test_without_a_configuration_all_is_as_it_comes():
    assert read(()).config == Config()


LEAVES = [
    *("specs", "rules", "output-format", "baseline", "lint", "fmt", "test", "lint.select"),
    *("lint.per-file-ignores", "lint.passes", "fmt.exclude", "test.fail-under", "rules.a.b"),
    *('rules."a.*"', 'lint.per-file-ignores."a*"', "other", "lint.other.deep"),
]
said = st.lists(
    st.tuples(st.sampled_from(LEAVES), values | st.sampled_from(['"off"', '["TS0402"]', "90"])),
    max_size=4,
    unique_by=lambda entry: entry[0].split(".")[0],
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said)
def test_whatever_is_said_is_read_or_refused(tmp_path, said):
    path = tmp_path / "tspec.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in said))
    found = read((path,))
    for diagnostic in found.diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.source.slice(diagnostic.span)
        assert render(diagnostic)
    for setting in found.config.rules:
        assert setting.source.slice(setting.span)


def test_reading_imports_nothing_heavy():
    heavy = ("tspec.syntax", "tspec.resolve", "lark", "torch", "rich", "pyarrow", "z3")
    program = (
        "import sys, pathlib, tspec.config.read as r\n"
        "r.read(r.find(pathlib.Path.cwd()))\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
