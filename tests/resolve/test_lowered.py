"""Layouts, equivalences and replays as values: what rooms that execute them start from."""

from __future__ import annotations

from pathlib import Path

from tspec.resolve import load, load_text
from tspec.resolve.program import rules
from tspec.resolve.program.sharding import (
    Dimension,
    DimsDeclaration,
    Flat,
    Modules,
    Placement,
    Product,
    Shape,
    Split,
    Stage,
    Sum,
    Tie,
)
from tspec.resolve.program.text import text
from tspec.resolve.program.trials import (
    Combined,
    Generated,
    Length,
    Noise,
    Number,
    Recorded,
    Same,
    Ulp,
)

HEAD = "edition 2026\n\nmodule t\n\nuse std.torch\n\n"

LAYOUT = """
mesh gpt {
  order: tp, cp, dp, pp
  tp: 2
  cp: 2
  dp: 2
  pp: 2
  regroup experts {
    order: ep, edp, pp
    ep: 4
    edp: 2
    pp: 2
  }
}

dims gpt {
  hidden: 16
  heads: 4
  groups: 2
  q_per_group: heads / groups
  head: hidden / heads
  vocab: 100
}

layout gpt on gpt {
  param "embedding.weight": [vocab padded to 128 * tp / tp, hidden]
  param "layers.*.qkv": [(groups / tp, q_per_group + 2, head), hidden]
  grad "layers.*.norm": [hidden] partial tp, cp when sequence_parallel and tp > 1
  output "layers.*": [seq / zigzag(cp) / tp, batch / dp, hidden]
  state "*": flat / dp

  tied "embedding.weight" == "output_layer.weight"

  stage 0: "embedding", "layers.0..1"
  stage 1 chunk 1: "layers.2..3", "norm"
}
"""

TRIALS = """
equivalence parallel_matches {
  layout gpt
  reference { tp: 1, dtype: float64 }
  candidate { sequence_parallel: true, seed: 3 }
  sweep world_size in [1, 2]
  require world_size == 1 implies not sequence_parallel
  equal when reference.dtype == candidate.dtype and candidate.tp > 1
  cover pairs
  run 1 step from generated(seed: 7, models: 2)
  compare outputs, params
  within 3 * noise(perturb: ulp(bfloat16), samples: 3) + atol(1e-4)
  store: sketch
  localize by rewriting inputs
}

equivalence from_a_recording {
  sweep dtype in [float32, float64]
  run 2 epochs from recorded("runs/a")
  compare losses
  within 0
}

replay resumed {
  fix rng, kernels
  save model, optimizer
  run 20 steps
  resume at 10
  expect same(params), loss < 10
}
"""


def program() -> rules.Program:
    loaded = load_text(HEAD + LAYOUT + TRIALS)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


def test_a_mesh_knows_its_ranks_and_all_its_axes() -> None:
    [mesh] = program().meshes
    assert mesh.world == 16
    assert mesh.axes == (("tp", 2), ("cp", 2), ("dp", 2), ("pp", 2))
    assert mesh.all_axes == {"tp": 2, "cp": 2, "dp": 2, "pp": 2, "ep": 4, "edp": 2}


def test_placements_hold_shapes_cuts_and_conditions() -> None:
    [layout] = program().layouts
    embedding, qkv, norm, output, state = layout.placements
    vocab = Dimension("vocab", (128, "tp"), (Split("tp"),))
    assert embedding == Placement("param", "embedding.weight", Shape((vocab, Dimension("hidden"))))
    fused = Product(
        (
            Dimension("groups", (), (Split("tp"),)),
            Dimension(Sum(("q_per_group", 2))),
            Dimension("head"),
        )
    )
    assert qkv.shape == Shape((Dimension(fused), Dimension("hidden")))
    assert qkv.cut_over == {"tp"}
    assert (norm.kind, norm.partial, norm.cut_over) == ("grad", ("tp", "cp"), {"tp", "cp"})
    assert norm.when is not None
    assert text(norm.when) == "sequence_parallel and tp > 1"
    assert isinstance(output.shape, Shape)
    assert output.shape.dimensions[0] == Dimension("seq", (), (Split("cp", "zigzag"), Split("tp")))
    assert state.shape == Flat((Split("dp"),))
    assert layout.flags == ("sequence_parallel",)


def test_ties_and_stages_hold_names() -> None:
    [layout] = program().layouts
    assert layout.ties == (Tie("embedding.weight", "output_layer.weight"),)
    assert layout.stages == (
        Stage(0, 0, (Modules("embedding"), Modules("layers.", (0, 1)))),
        Stage(1, 1, (Modules("layers.", (2, 3)), Modules("norm"))),
    )


def test_an_equivalence_holds_typed_settings_and_conditions() -> None:
    first, second = program().equivalences
    [layout] = program().layouts
    assert first.layout == layout
    assert first.reference is not None
    assert first.candidate is not None
    assert [(s.name, s.value.value, str(s.value.type)) for s in first.reference] == [
        ("tp", 1, "int"),
        ("dtype", "float64", "dtype"),
    ]
    assert [(s.name, s.value.value) for s in first.candidate] == [
        ("sequence_parallel", True),
        ("seed", 3),
    ]
    [sweep] = first.sweeps
    assert (sweep.name, [each.value for each in sweep.values]) == ("world_size", [1, 2])
    assert [text(each) for each in first.require] == [
        "world_size == 1 implies not sequence_parallel"
    ]
    assert [text(each) for each in first.equal_when] == [
        "reference.dtype == candidate.dtype and candidate.tp > 1"
    ]
    assert (first.cover, first.length) == ("pairs", Length(1, "step"))
    assert (first.sketched, first.localize) == (True, True)
    assert first.origin == Generated(7, 2)
    assert first.compare == ("outputs", "params")
    assert (second.reference, second.candidate) == (None, None)
    assert (second.sketched, second.localize) == (False, False)
    assert (second.length, second.origin) == (Length(2, "epoch"), Recorded("runs/a"))
    assert second.within == Number(0.0)


def test_a_tolerance_is_a_tree_of_values() -> None:
    within = program().equivalences[0].within
    assert isinstance(within, Combined)
    assert within.left == Combined("*", Number(3.0), Noise(Ulp("bfloat16"), 3))
    assert str(within.right) == "Absolute(value=Number(value=0.0001))"


def test_a_replay_holds_its_claims() -> None:
    [replay] = program().replays
    assert (replay.fix, replay.save) == (("rng", "kernels"), ("model", "optimizer"))
    assert (replay.length, replay.resume_at) == (Length(20, "step"), 10)
    same, condition = replay.claims
    assert same == Same("params")
    assert not isinstance(condition, Same)
    assert text(condition) == "loss < 10"


def test_a_condition_over_settings_is_typed_like_any_other() -> None:
    wrong = LAYOUT + TRIALS.replace("world_size == 1 implies", "world_size and")
    loaded = load_text(HEAD + wrong)
    [found] = loaded.diagnostics
    assert found.code == "TS0131"
    assert found.message == "a condition is true or false, and this is an int"


def test_a_mesh_of_the_own_file_goes_before_one_of_another(tmp_path: Path) -> None:
    text = "edition 2026\n\nmodule {0}\n\nmesh small {{\n  order: {1}\n  {1}: 2\n}}\n\n"
    text += 'dims small {{\n  size: {2}\n}}\n\nlayout small on small {{\n  param "w": [size / {1}]\n}}\n'
    (tmp_path / "a.tspec").write_text(text.format("a", "tp", 4))
    (tmp_path / "b.tspec").write_text(text.format("b", "dp", 8))
    loaded = load([tmp_path], project=tmp_path)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    held = [(each.module, each.mesh.axes, each.dims) for each in loaded.program.layouts]
    assert held == [
        ("a", (("tp", 2),), DimsDeclaration("small", "a", (("size", 4),))),
        ("b", (("dp", 2),), DimsDeclaration("small", "b", (("size", 8),))),
    ]
    assert len(loaded.program.meshes) == 2
