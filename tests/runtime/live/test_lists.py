"""Which modules are elements of lists, of which a step may use some."""

from __future__ import annotations

import pytest
from torch import fx, nn

from tspec.runtime.live.models import ModelRegistry


class Model(nn.Module):
    """A body of one layer and two blocks, and the heads of three tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(2, 2)) for _ in range(2))
        self.heads = nn.ModuleDict({"cat": nn.Linear(2, 2), "dog": nn.Linear(2, 2)})
        self.last = nn.Linear(2, 2)

    def forward(self, x):  # type: ignore[no-untyped-def]
        x = self.body(x)
        for block in self.blocks:
            x = block(x)
        return self.last(self.heads["cat"](x) + self.heads["dog"](x))


ELEMENTS = {"body.0", "body.1", "blocks.0", "blocks.1", "blocks.0.0", "blocks.1.0"}


@pytest.mark.parametrize(
    ("model", "elements"),
    [
        pytest.param(Model(), ELEMENTS | {"heads.cat", "heads.dog"}, id="lists"),
        pytest.param(
            nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU())), {"1.0"}, id="a sequence"
        ),
        pytest.param(nn.ModuleList([nn.Linear(2, 2)]), {"0"}, id="a list"),
    ],
)
def test_elements_of_lists(model: nn.Module, elements: set[str]) -> None:
    models = ModelRegistry()
    models.add_root(model)
    assert models.tables.elements == models.tables.in_lists == elements


def test_what_an_element_holds_is_in_a_list() -> None:
    models = ModelRegistry()
    models.add_root(nn.ModuleDict({"parts": nn.ModuleList([Model()])}))
    assert {"parts", "parts.0"} == models.tables.elements - {
        f"parts.0.{name}" for name in ELEMENTS | {"heads.cat", "heads.dog"}
    }
    assert {"parts.0.last", "parts.0.body"} <= models.tables.in_lists - models.tables.elements


def test_a_traced_model_has_the_lists_of_the_model() -> None:
    """The lists are plain modules there, whose keys are numbers."""
    models = ModelRegistry()
    models.add_root(fx.symbolic_trace(Model()))
    assert models.tables.elements >= {"body.0", "blocks.0", "blocks.0.0"}
    assert "last" not in models.tables.in_lists
