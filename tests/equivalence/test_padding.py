"""What the reference pads is cut to its real size, by the first place that fits, and padding stays a rank's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.padded_places import padded_places
from tspec.equivalence.padding import RealSizes, real_part, real_shape
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import TensorName
from tspec.equivalence.shards import LAYOUT_KINDS
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp
  tp: 2
}

dims ranks {
  words: 10
  width: 3
}

layout model on ranks {
  param "embedding.weight": [words padded to 4 * tp / tp, width]
  param "head.bias": [words padded to 4 * tp / tp]
  output "layers.head": [batch, words]
  output "*.head": [batch, words padded to 4 * tp / tp]
  output "tail": [seq padded to 2 * tp / tp, width]
  state "embedding.weight": flat padded to 8 / tp

  tied "embedding.weight" == "head.weight"
}

equivalence e {
  layout model
  reference { tp: 1 }
  candidate { tp: 2 }
  run 1 step
  compare params
  within 3 * noise()
}
"""


def places() -> tuple[RealSizes, ...]:
    program = load_text(TEXT).program
    assert program is not None, load_text(TEXT).diagnostics
    trial = trial_of(program.equivalences[0], ())
    return padded_places(trial.reference_layout, trial.reference_sizes, LAYOUT_KINDS)


@pytest.mark.parametrize(
    ("kind", "name", "held", "real"),
    [
        ("params", "embedding.weight", (12, 3), (10, 3)),
        ("params", "embedding.weight", (512, 3), (10, 3)),  # whatever the job pads to
        ("params", "embedding.weight", (10, 3), (10, 3)),
        ("params", "embedding.weight", (9, 3), (9, 3)),  # the comparison tells of it
        ("params", "head.weight", (12, 3), (10, 3)),
        ("param_grads", "head.bias", (12,), (10,)),
        ("params", "head.bias", (12, 3), (12, 3)),
        ("states", "head.bias.exp_avg", (12,), (10,)),
        ("states", "embedding.weight.exp_avg", (12, 3), (10, 3)),  # as the parameter
        ("outputs", "model.head", (2, 12), (2, 10)),
        ("output_grads", "model.head", (2, 12), (2, 10)),
        ("outputs", "layers.head", (2, 12), (2, 12)),  # an earlier place has no padding
        ("outputs", "tail", (5, 3), (5, 3)),  # a size of the input is that of the tensor
        ("outputs", "other", (12, 3), (12, 3)),
    ],
)
def test_a_padded_tensor_has_its_real_shape(
    kind: str, name: str, held: tuple[int, ...], real: tuple[int, ...]
) -> None:
    assert real_shape(places(), TensorName(kind, name, 1), held) == real


def test_the_real_part_is_what_comes_first_in_each_dimension() -> None:
    held = torch.arange(24).view(2, 12)
    part = real_part(places(), TensorName("outputs", "model.head", 1, 1), held)
    assert torch.equal(part, held[:, :10])


@pytest.mark.parametrize("start", [0, 8])
def test_a_rank_keeps_its_own_padding_where_a_tensor_is_replaced(
    start: int, tmp_path: Path
) -> None:
    """The second rank of two has two real columns of eight."""
    cut = Cut((2, 10), (*whole((2,)).runs, ((start, 8, 0, 1),)))
    name = TensorName("outputs", "model.head", 1, 1)
    full = torch.arange(20.0).view(2, 10)
    orders = Orders(
        1, ("outputs",), rewrites={name: cut.of(full)}, places={name: ("model.head", cut)}
    )
    progress = Progress(tmp_path, 0)
    held = torch.full((2, 8), -1.0)
    TensorRecorder(orders, progress).rewrite(name, held)
    progress.close()
    real = min(10 - start, 8)
    assert cut.is_padded == (real < 8)
    assert torch.equal(held[:, :real], full[:, start : start + real])
    assert bool((held[:, real:] == -1).all())
