"""Fields of the user's events: trees of literals, and what is said where they have no value."""

from collections import OrderedDict
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from tspec.runtime.edges import Missing
from tspec.runtime.live.arguments import CallSignature
from tspec.runtime.live.evaluate import FUNCTIONS, ExpressionError, compiled, names
from tspec.runtime.live.fields import FieldReader
from tspec.runtime.live.watch import EventSpec, FieldSpec

RESULT = ("name", "result")


def value(tree: Any, **scope: Any) -> Any:
    return compiled(tree, itemgetter)(scope, FUNCTIONS)


def test_the_expressions_of_the_library() -> None:
    shape = ("field", RESULT, "shape")
    assert value(("index", shape, ("literal", 1)), result=torch.ones(2, 5)) == 5
    assert value(("index", shape, ("negate", ("literal", 1))), result=torch.ones(2, 5)) == 5
    ids = ("index", RESULT, ("literal", "input_ids"))
    assert (
        value(
            ("index", ("field", ids, "shape"), ("literal", 0)),
            result={"input_ids": torch.ones(3, 1)},
        )
        == 3
    )
    assert value(("call", "count", (("name", "text"),), ()), text=["a", "b"]) == 2
    assert value(("call", "count", (("name", "text"),), ()), text="a word") == 1
    summed = ("call", "sum", (RESULT,), (("dim", ("literal", 0)),))
    assert value(summed, result=torch.tensor([[1, 2], [3, 4]])).tolist() == [4, 6]
    product = ("*", ("literal", 3), ("+", ("name", "a"), ("literal", 1)))
    assert value(product, a=4) == 15
    assert value(("field", RESULT, "rows"), result={"rows": 7}) == 7


@pytest.mark.parametrize(
    ("tree", "scope"),
    [
        (("field", RESULT, "shape"), {"result": None}),
        (("index", RESULT, ("literal", 9)), {"result": [1]}),
        (("call", "system", (("literal", "ls"),), ()), {}),
        (("/", ("literal", 1), ("literal", 0)), {}),
        (("name", "result"), {}),
    ],
)
def test_what_has_no_value_says_so(tree: Any, scope: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError):
        value(tree, **scope)


def test_names_of_what_is_saved() -> None:
    model = nn.Sequential(OrderedDict(a=nn.Linear(2, 2), b=nn.BatchNorm1d(2)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    keys = frozenset(model.state_dict())
    assert names(model.state_dict()) == names(model) == keys
    checkpoint = {"model": model.state_dict(), "epoch": 3, "optimizer": optimizer.state_dict()}
    assert names(checkpoint) == keys
    assert names({f"module.{key}": held for key, held in model.state_dict().items()}) == keys
    assert names({"epoch": 3}) == frozenset()


class RecordingSink:
    """Keeps what it is seen of fields without a value, and names nothing."""

    functions: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.seen: list[str] = []

    def unread(self, event: str, field: str, why: str) -> None:
        self.seen.append(f"{event}.{field}: {why}")


def test_a_call_that_returns_nothing_lacks_what_may_be_absent() -> None:
    """A module's own `load_state_dict` may return None, where torch's returns the keys that it has not found."""
    missing = ("field", RESULT, "missing_keys")
    fields = (
        FieldSpec("absent", ("optional", ("list", ("string",))), missing, True),
        FieldSpec("wanted", ("list", ("string",)), missing, True),
    )
    seen = RecordingSink()
    reader = FieldReader(EventSpec("load", ("load",), fields), "load", CallSignature(id, False))
    found = reader.after((), {}, None, seen, seen)  # type: ignore[arg-type]
    assert found == {"absent": Missing.ABSENT, "wanted": Missing.NOT_RECORDED}
    assert seen.seen == ["load.wanted: NoneType has no missing_keys"]


class Dispatcher:
    """Has a group of its own, which is the whole job, and none of the name of an axis."""

    own: ClassVar[None] = None

    def send(self, over: Any = None) -> None:
        """Something is sent."""


@pytest.mark.parametrize(("named", "ranks"), [("ep", "ep"), ("own", None), ("over", (0, 2))])
def test_a_group_is_an_argument_or_an_attribute_or_an_axis(named: str, ranks: Any) -> None:
    """In a method as well: an object without the attribute has not the group of the whole job."""
    field = FieldSpec("group", ("group",), ("name", named))
    seen = RecordingSink()
    signature = CallSignature(Dispatcher.send, method=True)
    reader = FieldReader(EventSpec("send", ("send",), (field,)), "send", signature)
    namer = SimpleNamespace(ranks_of=lambda group: (str(group),), functions={})
    found = reader.before((Dispatcher(), (0, 2)), {}, namer, seen)
    assert found == {"group": (str(ranks),)}
