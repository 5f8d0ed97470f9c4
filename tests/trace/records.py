"""Hypothesis strategies for any record that a trace can hold."""

from __future__ import annotations

from hypothesis import strategies as st

from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Location,
    Missing,
    Record,
    Ref,
    Sample,
    Tensor,
    Value,
)

_INT64 = st.integers(-(2**63), 2**63 - 1)
_FLOAT = st.floats() | st.sampled_from([-0.0, float("nan"), float("inf"), 5e-324])
_NAME = st.text(max_size=12) | st.sampled_from(["", "data", "größe", "层.0.weight", "a b", "\x00"])
_ANY_INT = st.integers() | st.integers(2**63, 2**200) | st.just(-(2**63))
_TEXT = _NAME | st.sampled_from(["\ud800", "x\udcffy"])

tensors = st.builds(
    Tensor,
    digest=st.none() | _INT64,
    norm=st.none() | _FLOAT,
    mean=st.none() | _FLOAT,
    std=st.none() | _FLOAT,
    min=st.none() | _FLOAT,
    max=st.none() | _FLOAT,
    sum=st.none() | _FLOAT,
    finite=st.none() | st.booleans(),
    zeros=st.none() | st.integers(0, 2**40),
    numel=st.none() | st.integers(0, 2**40),
    shape=st.none() | st.lists(st.integers(0, 2**33), max_size=4).map(tuple),
    dtype=st.none() | st.sampled_from(["float32", "bfloat16"]),
    device=st.none() | st.sampled_from(["cpu", "cuda:0"]),
    memory_format=st.none() | st.just("channels_last"),
    requires_grad=st.none() | st.booleans(),
    name=st.none() | _TEXT,
    object=st.none() | st.integers(0, 2**70),
)
_scalars = (
    st.sampled_from(list(Missing)) | st.booleans() | _ANY_INT | _FLOAT | _TEXT
    | st.builds(Ref, _NAME, _TEXT)
)  # fmt: skip
_hashable = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4
)
values: st.SearchStrategy[Value] = st.recursive(
    _scalars | tensors | st.frozensets(_hashable, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)

contexts = st.builds(
    Context,
    st.integers(0, 2**40),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from(["train", "eval"]),
)
_fields = st.dictionaries(_NAME, values, max_size=4)
_seq = st.integers(0, 2**50)
_spans = st.sampled_from(["step", "microbatch", "epoch"])
_locations = st.none() | st.builds(Location, _TEXT, st.integers(1, 10**6), _TEXT, _TEXT)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(Begin, _seq, contexts, _seq, st.none() | _seq, _NAME, _NAME, _fields, _locations),
    st.builds(End, _seq, contexts, _seq, _fields, st.none() | _NAME),
    st.builds(Sample, _seq, contexts, _NAME, _NAME, _fields, st.booleans()),
    st.builds(Boundary, _seq, contexts, _spans, _seq, _locations),
    st.builds(Finish, _seq, contexts, _locations),
)
