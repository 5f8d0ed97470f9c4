"""Names of what each rank holds are those of the one-device model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from tests.families import EXHAUSTIVE
from tests.megatron.jobs import recorded
from tspec.targets.megatron.names import (
    OUTPUT,
    ChunkPlace,
    first_layer,
    layer_counts,
    misnumbered,
    place_of,
)
from tspec.trace.model import Sample
from tspec.trace.read import read_trace

EVENTS = Path(__file__).parent / "events.tspec"
EMBEDDING = "embedding.word_embeddings.weight"


OTHERS = {
    EMBEDDING,
    "embedding.position_embeddings.weight",
    "decoder.final_layernorm.weight",
    "decoder.final_layernorm.bias",
}
"""What the one-device model holds beside its layers."""


def parameters(folder: Path) -> list[set[str]]:
    """The names of the parameters of each rank's model, without the optimizer's own copies."""
    return [
        {
            record.subject
            for record in stream.records
            if isinstance(record, Sample)
            and record.kind == "parameter"
            and not record.subject.startswith("optimizer.")
        }
        for stream in read_trace(folder).streams
    ]


def layers(names: set[str]) -> dict[int, set[str]]:
    """Of each layer, the paths of the parameters in it."""
    found: dict[int, set[str]] = {}
    for name in names:
        if name.startswith("decoder.layers."):
            _, _, index, path = name.split(".", 3)
            found.setdefault(int(index), set()).add(path)
    return found


def experts(paths: set[str]) -> set[int]:
    """The experts of which some paths are."""
    parts = (path.partition(".local_experts.")[2] for path in paths)
    return {int(part.split(".")[0]) for part in parts if part}


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "held"),
    [
        ("pp=2,first=1,steps=1", [{0}, {1, 2, 3}]),
        pytest.param("pp=2,virtual=2,steps=1", [{0, 2}, {1, 3}], marks=EXHAUSTIVE),
        *(
            pytest.param(layout, held, marks=EXHAUSTIVE)
            for layout, held in (
                ("pp=2,bf16,untied,steps=1", [{0, 1}, {2, 3}]),
                ("dp=2,experts=4,ep=2,steps=1", [{0, 1, 2, 3}] * 2),
            )
        ),
    ],
)
def test_ranks_hold_what_one_device_holds(
    layout: str, held: list[set[int]], tmp_path: Path
) -> None:
    recorded(tmp_path / "run", layout, EVENTS)
    names = parameters(tmp_path / "run")
    assert [set(layers(each)) for each in names] == held
    whole = layers(set().union(*names))
    assert set(whole) == {0, 1, 2, 3} and all(paths == whole[0] for paths in whole.values())
    others = {name for each in names for name in each if not name.startswith("decoder.layers.")}
    if "ep=" in layout:
        assert [experts(layers(each)[0]) for each in names] == [{0, 1}, {2, 3}]
        assert others == OTHERS
    else:
        untied = "untied" in layout
        assert others == (OTHERS | {OUTPUT} if untied else OTHERS)
        assert names[0] & names[1] == (set() if untied else {EMBEDDING})


def config(**said: Any) -> SimpleNamespace:
    """As much of a `TransformerConfig` as places are made from."""
    given = {"num_layers": 8, "pipeline_model_parallel_size": 4}
    given["virtual_pipeline_model_parallel_size"] = None
    return SimpleNamespace(**given | said)


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({}, [[2], [2], [2], [2]]),
        ({"virtual_pipeline_model_parallel_size": 2}, [[1, 1]] * 4),
        ({"num_layers_in_first_pipeline_stage": 2, "num_layers": 11}, [[2], [3], [3], [3]]),
        (
            {
                "num_layers_in_first_pipeline_stage": 1,
                "num_layers_in_last_pipeline_stage": 3,
                "num_layers": 8,
            },
            [[1], [2], [2], [3]],
        ),
        (
            {
                "account_for_embedding_in_pipeline_split": True,
                "account_for_loss_in_pipeline_split": True,
                "num_layers": 14,
                "virtual_pipeline_model_parallel_size": 2,
            },
            [[1, 2], [2, 2], [2, 2], [2, 1]],
        ),
    ],
)
def test_layers_of_each_chunk(said: dict[str, Any], counts: list[list[int]]) -> None:
    asked = config(**said)
    assert layer_counts(asked) == counts
    assert sum(map(sum, counts)) == asked.num_layers


def test_chunks_follow_one_another_by_virtual_stage() -> None:
    counts = [[1, 2], [2, 2], [2, 2], [2, 1]]
    order = [first_layer(counts, stage, virtual) for virtual in (0, 1) for stage in range(4)]
    assert order == [0, 1, 3, 5, 7, 9, 11, 13]


def test_a_custom_layout_says_what_lies_where() -> None:
    def kinds(*names: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in names]

    layout = [[kinds("embedding", "decoder")], [kinds("decoder", "decoder", "loss")]]
    asked = config(pipeline_model_parallel_layout=SimpleNamespace(layout=layout))
    assert layer_counts(asked) == [[1], [2]]


def test_names_by_place() -> None:
    place = ChunkPlace(layer=2, expert=4, tied=True)
    assert place.name("decoder.layers.1") == "decoder.layers.3"
    within = "decoder.layers.{}.mlp.experts.local_experts.{}.linear_fc1.weight"
    assert place.name(within.format(0, 1)) == within.format(2, 5)
    assert place.name(OUTPUT) == EMBEDDING
    for same in ("decoder.final_layernorm.weight", "decoder.layers", "decoder"):
        assert place.name(same) == same
    # A chunk is called as the whole model is, or by its place.
    assert (place.name(""), ChunkPlace(title="GPTModel.chunks.0").name("")) == (
        "",
        "GPTModel.chunks.0",
    )


def chunk(*parts: str, stage: int) -> nn.Module:
    """A chunk of a model with tied embeddings that has these parts beside its decoder."""
    made: Any = nn.ModuleDict({part: nn.Identity() for part in ("decoder", *parts)})
    made.config = config(num_moe_experts=None, expert_model_parallel_size=1)
    made.share_embeddings_and_output_weights = True
    ranks = {"pp": stage, "ep": 0}
    groups = {axis: SimpleNamespace(rank=lambda at=at: at) for axis, at in ranks.items()}
    made.pg_collection = SimpleNamespace(**groups)
    return made


@pytest.mark.parametrize(
    ("parts", "stage", "tied"),
    [
        (("embedding",), 0, False),
        (("output_layer",), 3, True),
        # It predicts further tokens, from embeddings of its own, which its output uses too.
        (("embedding", "mtp", "output_layer"), 3, False),
    ],
)
def test_which_output_is_a_copy_of_the_embeddings(
    parts: tuple[str, ...], stage: int, tied: bool
) -> None:
    assert place_of(chunk(*parts, stage=stage)).tied is tied


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_stage_that_predicts_further_tokens(tmp_path: Path) -> None:
    recorded(tmp_path / "run", "pp=2,mtp=1,rope,steps=1", EVENTS)
    first, last = parameters(tmp_path / "run")
    added = {name for name in last if name.startswith("mtp.layers.0.")}
    inner = {name.removeprefix("mtp.layers.0.transformer_layer.") for name in added}
    assert layers(last)[3] <= inner
    assert added and not any(name.startswith("mtp.") for name in first)
    assert first & last == {EMBEDDING} and OUTPUT in last


def test_a_layer_that_has_another_number_is_told_of() -> None:
    chunk = nn.ModuleDict({"decoder": nn.ModuleDict({"layers": nn.ModuleList()})})
    for number in (3, 5):
        layer = nn.Identity()
        layer.layer_number = number
        chunk["decoder"]["layers"].append(layer)
    assert list(misnumbered(chunk, ChunkPlace(layer=2))) == [
        "decoder.layers.3 has layer_number 5: by its place in the pipeline it is layer 4"
    ]
