"""The features of a tensor: the values that rules read and recordings hold of it.

A feature that is one number of all elements needs only a row of `FEATURES`: the type checker,
`tspec why`, z3, the columns of a trace, DuckDB, the hooks and the interpreter read it. Each feature
is a field of `tspec.trace.model.Tensor` as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tspec.builtin.examples import EACH_PARAMETER


@dataclass(frozen=True, slots=True)
class BuiltinFeature:
    """One feature.

    `kind`: its type in a trace. `many`: the fold that combines the values of several tensors;
    `list` gives one value for each; with None each executor has its own code. `inputs`,
    `inputs_of_many`: the recorded features from which it is computed, if it is not recorded itself.
    `passes`: the number of reads of the elements, 0 if none. `bounds`: `size` is never negative (or
    NaN); `count` and `fraction` are never either. `rounded`: `==` compares rounded numbers.
    `phrase`: its name in `tspec why`.
    """

    name: str
    meaning: str = field(kw_only=True)
    """Its meaning, in one sentence of the vocabulary."""
    example: str = field(kw_only=True)
    """A rule's clauses in which it stands."""
    kind: Literal["int", "float", "bool", "string", "shape"]
    many: str | None = "list"
    passes: float = 0.0
    bounds: Literal["size", "count", "fraction"] | None = None
    rounded: bool = False
    phrase: str | None = None
    inputs: tuple[str, ...] = ()
    inputs_of_many: tuple[str, ...] = ()
    aspect: str = "values"
    """The aspect of findings about it in a report."""
    live: Callable[[Any, Any], Any] | None = None
    """From the module torch and the real elements to a tensor of one element.

    None: `tspec.runtime.live.features` reads it together with others.
    """
    along: Callable[[Any, int], Any] | None = None
    """From float64 elements and a dimension to the feature along that dimension."""
    of_number: Callable[[float], Any] | None = None
    """The feature of a tensor with one element, from that number."""
    is_finite: Callable[[Any], bool] | None = None
    """True if a value of the feature implies that all elements are finite. None: values do not show
    it.
    """

    @property
    def dotted(self) -> bool:
        """Read as `x.shape`, not as `norm(x)`."""
        return self.many == "list"


def _absmax(torch: Any, x: Any) -> Any:
    """The maximum of the extremes' absolute values, which needs no copy of the elements."""
    if not x.numel():
        return x.new_full((), math.nan, dtype=torch.float64)
    return torch.stack(torch.aminmax(x)).double().abs().amax()


_ALL: Sequence[BuiltinFeature] = (
    BuiltinFeature(
        "digest", "int", None, 10.0, phrase="the contents of {}",
        meaning="A hash of a tensor's elements and their order.",
        example=f"{EACH_PARAMETER} digest(p.data) != previous(digest(p.data))",
    ),
    BuiltinFeature(
        "norm", "float", None, 1.0, "size", True, along=lambda x, dim: x.norm(dim=dim),
        of_number=abs, is_finite=math.isfinite,
        meaning="The Euclidean norm.",
        example=f"{EACH_PARAMETER} norm(p.data) < 1e6",
    ),
    BuiltinFeature(
        "mean", "float", None, 1.0, rounded=True, inputs_of_many=("numel", "sum"),
        along=lambda x, dim: x.mean(dim), of_number=float, is_finite=math.isfinite,
        meaning="The mean of the elements.",
        example=f"{EACH_PARAMETER} abs(mean(p.data)) < 10",
    ),
    BuiltinFeature(
        "std", "float", None, 2.0, "size", True, along=lambda x, dim: x.std(dim, correction=0),
        of_number=lambda x: 0.0 if math.isfinite(x) else math.nan, is_finite=math.isfinite,
        meaning="The population's standard deviation.",
        example=f"{EACH_PARAMETER} std(p.data) > 0",
    ),
    BuiltinFeature(
        "min", "float", "min", 1.0, phrase="the smallest of {}", along=lambda x, dim: x.amin(dim),
        of_number=float, is_finite=math.isfinite,
        meaning="The smallest element; NaN if one is.",
        example=f"{EACH_PARAMETER} min(p.data) > -100",
    ),
    BuiltinFeature(
        "max", "float", "max", 1.0, phrase="the largest of {}", along=lambda x, dim: x.amax(dim),
        of_number=float, is_finite=math.isfinite,
        meaning="The largest element; NaN if one is.",
        example=f"{EACH_PARAMETER} max(p.data) < 100",
    ),
    BuiltinFeature(
        "sum", "float", "sum", 1.0, rounded=True, along=lambda x, dim: x.sum(dim),
        of_number=float, is_finite=math.isfinite,
        meaning="The sum of the elements.",
        example=f"{EACH_PARAMETER} abs(sum(p.data)) < 1e6",
    ),
    BuiltinFeature(
        "finite", "bool", None, 1.0, phrase="whether {} is finite", aspect="finiteness",
        of_number=math.isfinite,
        meaning="Whether no element is NaN or infinite; also of a number.",
        example=f"{EACH_PARAMETER} finite(p.data)",
    ),
    # A recording holds the count; rules read the fraction.
    BuiltinFeature(
        "zeros", "int", None, 1.0, "fraction", True, "the share of zeros in {}",
        ("numel", "zeros"), ("numel", "zeros"), of_number=lambda x: 1.0 if x == 0 else 0.0,
        meaning="The fraction of exact zeros.",
        example=f"{EACH_PARAMETER} zeros(p.data) < 90%",
    ),
    BuiltinFeature(
        "numel", "int", "sum", bounds="count", phrase="the number of elements of {}",
        aspect="forward", of_number=lambda x: 1,
        meaning="The number of elements.",
        example=f"{EACH_PARAMETER} numel(p.data) > 0",
    ),
    BuiltinFeature(
        "absmax", "float", "max", 1.0, "size", phrase="the largest magnitude in {}",
        live=_absmax, of_number=abs, is_finite=math.isfinite,
        meaning="The largest absolute value.",
        example=f"{EACH_PARAMETER} absmax(p.data) < 100",
    ),
    BuiltinFeature(
        "nans", "int", "sum", 1.0, "count", phrase="the number of NaNs in {}", aspect="finiteness",
        live=lambda torch, x: x.isnan().sum(), of_number=lambda x: int(math.isnan(x)),
        is_finite=lambda count: bool(count == 0),
        meaning="How many elements are NaN.",
        example=f"{EACH_PARAMETER} nans(p.data) == 0",
    ),
    BuiltinFeature(
        "shape", "shape", aspect="forward",
        meaning="The sizes of the dimensions.",
        example=f"{EACH_PARAMETER} count(p.data.shape) <= 4",
    ),
    BuiltinFeature(
        "dtype", "string", aspect="precision",
        meaning="The type of the elements.",
        example=f"{EACH_PARAMETER} p.data.dtype == float32",
    ),
    BuiltinFeature(
        "device", "string", aspect="architecture",
        meaning="Where the elements are; `type` and `index` are its parts.",
        example=f'{EACH_PARAMETER} p.data.device.type == "cuda"',
    ),
    BuiltinFeature(
        "memory_format", "string", aspect="architecture",
        meaning="The order of the dimensions in memory.",
        example=f"{EACH_PARAMETER} p.data.memory_format == channels_last",
    ),
    BuiltinFeature(
        "requires_grad", "bool", aspect="ownership",
        meaning="Whether autograd records operations on it.",
        example=f"{EACH_PARAMETER} p.data.requires_grad",
    ),
    BuiltinFeature(
        "name", "string", aspect="ownership",
        meaning="The canonical name of the parameter or buffer that it is; absent of any other.",
        example="for p in parameters after optimizer.step when present(p.data.name) "
        "expect p.data.name == p.name",
    ),
)  # fmt: skip

FEATURES: Mapping[str, BuiltinFeature] = {feature.name: feature for feature in _ALL}
"""The features by name, in the order of a trace's columns."""
FUNCTIONS = tuple(feature.name for feature in _ALL if not feature.dotted)
"""Features that are read as `norm(x)`."""
DOTTED = tuple(feature.name for feature in _ALL if feature.dotted)
"""Features that are read as `x.shape`. Of a collection of tensors they are the list of each."""
OF_ELEMENTS = tuple(feature.name for feature in _ALL if feature.passes)
"""Features that read the elements: they change only when the tensor's elements do."""
