"""Parameters of two models are copies of each other where all of one model are in the other."""

from tspec.runtime.live.entities.copies import copies, counterparts

NET = {"0.weight": ("0.weight", (4, 2)), "1.weight": ("1.weight", (2, 4))}


def under(prefix: str, model: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """A model that holds the net under a prefix."""
    return {
        f"{prefix}{path}": (f"{model}.{prefix}{path}", shape) for path, (_, shape) in NET.items()
    }


def test_a_model_of_the_same_names_is_a_copy() -> None:
    found = copies([NET, under("", "Net#2")])
    assert found["0.weight"] == {"Net#2.0.weight"}
    assert found["Net#2.1.weight"] == {"1.weight"}


def test_a_copy_may_have_a_prefix() -> None:
    found = copies([under("module.", "Average"), NET, under("", "Net#2")])
    assert found["0.weight"] == {"Average.module.0.weight", "Net#2.0.weight"}
    assert found["Average.module.0.weight"] == {"0.weight", "Net#2.0.weight"}


def test_other_shapes_and_missing_parameters_make_no_copy() -> None:
    wider = {path: (f"Wide.{path}", (8, *shape[1:])) for path, (_, shape) in NET.items()}
    assert (
        copies([NET, wider, {"0.weight": ("Part.0.weight", (4, 2)), "2.bias": ("b", (3,))}]) == {}
    )


def test_several_places_that_fit_tell_nothing() -> None:
    towers = {**under("left.", "Towers"), **under("right.", "Towers")}
    assert copies([NET, towers]) == {}


def test_what_two_models_share_is_no_copy_of_itself() -> None:
    assert copies([NET, {f"net.{path}": held for path, held in NET.items()}]) == {}


def test_alike_parts_of_a_model_are_counterparts() -> None:
    towers = {**under("left.", "Towers"), **under("right.", "Towers")}
    assert counterparts([towers]) == {
        "Towers.left.0.weight": {"Towers.right.0.weight"},
        "Towers.left.1.weight": {"Towers.right.1.weight"},
        "Towers.right.0.weight": {"Towers.left.0.weight"},
        "Towers.right.1.weight": {"Towers.left.1.weight"},
    }


def test_layers_of_a_list_and_parts_of_other_shapes_are_no_counterparts() -> None:
    layers = {**under("0.", "Net"), **under("1.", "Net")}
    wide = {
        f"wide.{path}": (f"Net.wide.{path}", (8, *shape[1:])) for path, (_, shape) in NET.items()
    }
    assert counterparts([layers]) == {}
    assert counterparts([{**under("left.", "Net"), **wide}]) == {}
    assert counterparts([{"query.weight": ("q", (4, 4)), "key.weight": ("k", (4, 4))}]) == {}
