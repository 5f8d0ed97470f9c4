"""Parameters that reach a rank in the next forward pass are recorded there, as those of the step that updated them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.observing.updated_parameters import UpdatedParameters
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import TensorName


class Job:
    """The parameters of a rank, and which of them have been gathered; None once the groups are gone."""

    def __init__(self, **values: float) -> None:
        self.values = values
        self.gathered: dict[str, bool] | None = dict.fromkeys(values, True)

    def fields(self, kind: str, name: str) -> dict[str, Any]:
        if name == "gathered":
            return dict(self.gathered or {})
        return {each: torch.tensor([value]) for each, value in self.values.items()}


def recorders(folder: Path) -> tuple[UpdatedParameters, TensorRecorder]:
    orders = Orders(2, ("params",))
    recorder = TensorRecorder(orders, Progress(folder, 0))
    return UpdatedParameters(recorder, UpdateSizes(orders, recorder)), recorder


def recorded(recorder: TensorRecorder) -> dict[tuple[str, int], float]:
    return {(name.name, name.step): float(each) for name, each in recorder.tensors.items()}


def test_a_bucket_is_read_when_the_forward_pass_has_waited_for_it(tmp_path: Path) -> None:
    parameters, recorder = recorders(tmp_path)
    job: Any = Job(first=1.0, second=1.0, own=1.0)
    job.gathered |= {"first": False, "second": False}
    parameters.update_ends(1, job)
    parameters.end_step(1, job)
    assert recorded(recorder) == {("own", 1): 1.0}
    job.values["first"], job.gathered["first"] = 2.0, True
    parameters.gathered(job)
    assert recorded(recorder) == {("own", 1): 1.0, ("first", 1): 2.0}
    parameters.gathered(job, all_are=True)  # the next update begins, and nothing was gathered
    assert recorded(recorder)["second", 1] == 1.0
    assert not parameters.ungathered


def test_what_is_gathered_after_the_last_step_is_named(tmp_path: Path) -> None:
    """The job has ended its process group before the step closes."""
    parameters, recorder = recorders(tmp_path)
    job: Any = Job(cut=1.0, own=1.0)
    job.gathered["cut"] = False
    parameters.update_ends(2, job)
    job.gathered = None
    parameters.end_step(2, job)
    assert recorded(recorder) == {("own", 2): 1.0}
    assert parameters.ungathered == {TensorName("params", "cut", 2)}


def test_what_is_gathered_before_the_step_closes_belongs_to_it(tmp_path: Path) -> None:
    """As by an evaluation."""
    parameters, recorder = recorders(tmp_path)
    job: Any = Job(cut=1.0)
    job.gathered["cut"] = False
    parameters.update_ends(1, job)
    job.values["cut"], job.gathered["cut"] = 2.0, True
    parameters.end_step(1, job)
    assert (recorded(recorder), parameters.ungathered) == ({("cut", 1): 2.0}, frozenset())
