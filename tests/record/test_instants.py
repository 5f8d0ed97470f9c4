"""What is sampled as a tensor, and at which events nothing is."""

from __future__ import annotations

from pathlib import Path

from tspec.builtin.events import OTHER, roles_of
from tspec.record.instants import LIVE_ONLY, TENSORS, light_events
from tspec.record.specs import vocabulary
from tspec.record.watch import watch_spec
from tspec.resources import shipped


def test_fields_of_parameters_that_hold_a_tensor_are_sampled_as_tensors() -> None:
    entities = watch_spec(vocabulary([shipped("stdlib") / "megatron.tspec"])).entities
    [parameter] = [each for each in entities if each.kind == "parameter"]
    types = (("tensor",), ("optional", ("tensor",)))
    declared = {field.name for field in parameter.fields if field.type in types}
    assert declared == {*TENSORS["parameter"], *LIVE_ONLY["parameter"]}


def test_operators_layers_and_what_another_event_samples_are_light(tmp_path: Path) -> None:
    own = tmp_path / "own.tspec"
    own.write_text(
        "edition 2026\n"
        "event rescale = call trainer.rescale\n"
        "event activation = call torch.nn.functional.gelu\n"
        "event convolution = call torch.nn.Conv2d.forward\n"
        "event operators = call torch.nn.functional.*\n"
        "event either = call trainer.rescale, torch.nn.functional.gelu\n"
    )
    found = light_events(watch_spec(vocabulary([own])))
    assert {"activation", "operators", "convolution", "image_layer", "sequence_layer"} <= found
    assert {"graph", "loading"} <= found  # `backward` samples what `graph` could
    assert not {"rescale", "either"} & found


SAMPLE_ALL = {
    *("accumulating", "averaging", "derivative", "exchange", "filling", "gradient_sync", "init"),
    *(
        "initialise",
        "join",
        "load_optimizer",
        "loading_state",
        "compare_metric",
        "plateau",
        "prepared_schedule",
        "prepared_step",
        "saved_run",
        "saving",
    ),
    *("set_up", "entropy", "generate", "look_up", "pass_layers"),
    *("backward_step", "clear_main_grads", "pass_micro_batches", "pipelined", "schedule.step"),
    *("read_batch", "token_losses", "train.end", "waiting"),
}
"""Shipped events of which the first calls in a step are sampled in full. Each makes recordings cost more, so a new one is a decision."""


def test_few_shipped_events_sample_all_state() -> None:
    spec = watch_spec(vocabulary(sorted(shipped("stdlib").glob("*.tspec"))))
    without_roles = {event.name for event in spec.events if roles_of(event.name) is OTHER}
    bare = {name for name in without_roles if name.startswith("torch.")}
    assert without_roles - bare - light_events(spec) == SAMPLE_ALL
