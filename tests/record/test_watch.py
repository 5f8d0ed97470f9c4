"""What a recording watches: the shipped vocabulary and the project's own, as literal values."""

from pathlib import Path

import pytest

from tspec.record import RecordingError
from tspec.record.specs import vocabulary
from tspec.record.watch import watch_spec
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec

OWN = """edition 2026

module own

use std.torch

event prepare = call train.prepare {
  rows: int = result["input_ids"].shape[0]
  samples: int = count(text) + 1
}

extend entity parameter {
  expert: bool
}
"""


def test_a_watch_spec_is_an_expression_that_builds_it(tmp_path: Path) -> None:
    (tmp_path / "own.tspec").write_text(OWN)
    spec = watch_spec(vocabulary([tmp_path / "own.tspec"]))
    scope = {c.__name__: c for c in (WatchSpec, EventSpec, EntitySpec, FieldSpec, GroupSpec)}
    assert eval(repr(spec), scope) == spec
    prepare = next(event for event in spec.events if event.name == "prepare")
    ids = ("field", ("index", ("name", "result"), ("literal", "input_ids")), "shape")
    assert prepare.fields == (
        FieldSpec("rows", ("int",), ("index", ids, ("literal", 0)), True),
        FieldSpec(
            "samples", ("int",), ("+", ("call", "count", (("name", "text"),), ()), ("literal", 1))
        ),
    )
    parameter = spec.entity("parameter")
    assert parameter is not None
    assert {"data", "grad", "names", "expert"} <= {field.name for field in parameter.fields}
    assert {"forward", "optimizer.step", "torch.nn.ReLU.forward"} <= {
        event.name for event in spec.events
    }


def test_a_spec_with_errors_is_said_before_anything_runs(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tspec"
    wrong.write_text("edition 2026\n\nmodule wrong\n\nuse std.torhc\n")
    with pytest.raises(RecordingError, match="torhc"):
        vocabulary([wrong])
