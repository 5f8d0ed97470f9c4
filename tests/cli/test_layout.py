"""`tspec layout show` and `tspec layout check`: what ranks hold, as text and as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app
from tspec.resources import shipped

SPEC = """edition 2026

module small

mesh small {
  order: tp, cp, dp, pp
  tp: 2
  cp: 2
  dp: 1
  pp: 2
  regroup experts {
    order: ep, edp, pp
    ep: 4
    edp: 1
    pp: 2
  }
}

dims small {
  vocab: 10
  hidden: 4
  ffn: 6
  experts: 8
}

layout small on small replicated dp, edp {
  param "embedding.weight": [vocab padded to 4 * tp / tp, hidden] replicated cp
  param "layers.*.fc1.weight": [(2, ffn / tp), hidden] replicated cp
  param "layers.*.experts.weight": [experts / ep, hidden]
  grad "layers.*.fc1.weight": [(2, ffn / tp), hidden] partial cp when overlapped
  output "layers.*": [seq / zigzag(cp), hidden] replicated tp
  state "layers.*.experts.weight": flat padded to edp / edp
  state "*": flat padded to cp / cp

  tied "embedding.weight" == "head.weight"

  stage 0 chunk 0: "embedding", "layers.0..1"
  stage 1 chunk 0: "layers.2..3"
  stage 0 chunk 1: "layers.4..5"
  stage 1 chunk 1: "layers.6..7", "head"
}
"""

RANK_3 = """layout small: rank 3 of 8
  tp 1 of 2, cp 1 of 2, dp 0 of 1, pp 0 of 2
  experts: ep 3 of 4, edp 0 of 1, pp 0 of 2
  stage 0, chunk 0: embedding, layers.0..1
  stage 0, chunk 1: layers.4..5

param embedding.weight
  [8, 4] of [10, 4]
  dimension 0: 8..9 and 6 of padding
  the same on rank 1

param layers.{0, 1, 4, 5}.fc1.weight
  [6, 4] of [12, 4]
  dimension 0: 3..5, 9..11
  the same on rank 1

param layers.{0, 1, 4, 5}.experts.weight
  [2, 4] of [8, 4]
  dimension 0: 6..7

grad layers.{0, 1, 4, 5}.fc1.weight
  [6, 4] of [12, 4]
  dimension 0: 3..5, 9..11
  a summand over cp

output layers.{0, 1, 4, 5}
  [8, 4] of [16, 4]
  dimension 0: 4..11
  the same on rank 2

state layers.{0, 1, 4, 5}.experts.weight
  [8] of [8, 4]
  dimension 0: 6..7
  flattened: elements 0..7

state embedding.weight
  [16] of [10, 4]
  dimension 0: 8..9 and 6 of padding
  flattened: elements 16..31

state layers.{0, 1, 4, 5}.fc1.weight
  [12] of [12, 4]
  dimension 0: 3..5, 9..11
  flattened: elements 12..23
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "small.tspec"
    path.write_text(SPEC)
    return str(path)


def tspec(*arguments: str):
    return CliRunner().invoke(app, ["layout", *arguments])


def test_a_rank_as_text(spec: str) -> None:
    result = tspec("show", spec, "--rank", "3", "--given", "seq=16", "--given", "overlapped=true")
    assert result.stdout == RANK_3
    assert result.exit_code == 0


def test_sizes_that_are_not_given_are_asked_for(spec: str) -> None:
    result = tspec("show", spec, "--rank", "7")
    assert "param head.weight\n  [8, 4] of [10, 4]\n" in result.stdout
    assert (
        "output layers.{2, 3, 6, 7}\n  its size needs `seq`: --given seq=NUMBER\n" in result.stdout
    )
    assert "grad" not in result.stdout


class _Page(HTMLParser):
    """The text of a page, and its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_picture_of_all_ranks(spec: str, tmp_path: Path) -> None:
    file = tmp_path / "small.html"
    arguments = ("show", spec, "--rank", "3", "--given", "seq=16", "--format", "html")
    assert tspec(*arguments, "-o", str(file)).exit_code == 0
    assert file.read_text() == tspec(*arguments).stdout
    page = _Page()
    page.feed(file.read_text())
    assert "ranks 1, 3" in page.text
    assert "8..9 and 6 of padding; 0..3" in page.text
    assert "[vocab padded to 4 * tp / tp, hidden]: 10 × 4" in page.text
    assert not [attrs for tag, attrs in page.tags if tag in ("script", "link", "img")]
    # The gated MLP: two blocks for each of two shards, each a quarter of the height.
    picture = file.read_text().split("param layers.{0, 1, 4, 5}.fc1.weight")[1].split("</svg>")[0]
    boxes = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', picture
    )
    assert [tuple(map(float, box)) for box in boxes] == [
        (0.0, 0.0, 320.0, 40.0),
        (0.0, 80.0, 320.0, 40.0),
        (0.0, 40.0, 320.0, 40.0),
        (0.0, 120.0, 320.0, 40.0),
    ]


def test_a_picture_shows_the_dimensions_that_are_cut(tmp_path: Path) -> None:
    """Of logits the third dimension is cut and the second is not: no shard covers another."""
    place = 'output "logits": [seq / cp, batch, vocab padded to 4 * tp / tp]'
    text = SPEC.replace('output "layers.*": [seq / zigzag(cp), hidden] replicated tp', place)
    (tmp_path / "a.tspec").write_text(text.replace('"head"', '"head", "logits"', 1))
    given = ("--given", "seq=16", "--given", "batch=3")
    page = tspec("show", str(tmp_path / "a.tspec"), *given, "--format", "html").stdout
    assert "16 × 3 × 10, drawn are dimensions 0 and 2" in page
    picture = page.split("output logits</h2>")[1].split("</svg>")[0]
    boxes = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', picture)
    assert len(set(boxes)) == len(boxes) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rank", "8"), "ranks 0 to 7"),
        (("--given", "sep=16"), "did you mean `seq`?"),
        (("--given", "seq=true"), "`seq` is a number from 1 on"),
        (("--given", "overlapped=1"), "`overlapped` is true or false"),
        (("--given", "seq=10"), "10 is not divisible into 4 parts over `cp`"),
        (("--layout", "smal"), "did you mean `small`?"),
    ],
)
def test_what_cannot_be_shown_is_said(spec: str, arguments: tuple[str, ...], said: str) -> None:
    result = tspec("show", spec, *arguments)
    assert result.exit_code == 2
    assert said in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())


def test_a_layout_that_does_not_tile_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tspec"
    wrong.write_text(SPEC.replace("padded to 4 * tp / tp", "padded to 12 / tp"))
    for command in (["layout", "check"], ["layout", "show"], ["lint"], ["compile", "-o", "h.py"]):
        result = CliRunner().invoke(app, [*command, str(wrong)])
        assert result.exit_code == 2
        assert "error[TS0200]: no rank holds index" in result.stderr


def test_a_run_does_not_prove_layouts(tmp_path: Path) -> None:
    """Each process of a job would; rules do not read them."""
    wrong = SPEC.replace("padded to 4 * tp / tp", "padded to 12 / tp")
    rule = "\ninvariant losses {\n  each step\n  expect contains loss.backward\n  else warn\n}\n"
    (tmp_path / "wrong.tspec").write_text(
        wrong.replace("mesh small {", "use std.torch\n\nmesh small {", 1) + rule
    )
    (tmp_path / "script.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        result = CliRunner().invoke(app, ["run", "wrong.tspec", "--", "script.py"])
    assert "TS0200" not in result.stderr, result.stderr
    assert result.exit_code == 0, result.output


def test_without_a_layout_there_is_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / "a.tspec").write_text("edition 2026\n\nmodule a\n")
    result = tspec("check", str(tmp_path))
    assert result.exit_code == 2
    assert "no layout in" in result.stderr


def test_the_shipped_layouts_tile_their_tensors() -> None:
    result = tspec("check", str(shipped("specs") / "megatron" / "layouts"))
    assert result.exit_code == 0
    assert [line.partition(":")[0].rpartition(".")[2] for line in result.stdout.splitlines()] == [
        "gpt",
        "llama",
        "moe",
    ]
