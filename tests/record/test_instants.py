"""What is sampled as a tensor: every field of parameters that the shipped modules declare as one."""

from __future__ import annotations

from tspec.record.instants import TENSORS
from tspec.record.specs import vocabulary
from tspec.record.watch import watch_spec
from tspec.resources import shipped


def test_fields_of_parameters_that_hold_a_tensor_are_sampled_as_tensors() -> None:
    entities = watch_spec(vocabulary([shipped("stdlib") / "megatron.tspec"])).entities
    [parameter] = [each for each in entities if each.kind == "parameter"]
    types = (("tensor",), ("optional", ("tensor",)))
    declared = {field.name for field in parameter.fields if field.type in types}
    assert declared == set(TENSORS["parameter"])
