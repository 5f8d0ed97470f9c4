"""How a job of the tests is laid out, and written on a command line: `tp=2,pp=2,virtual=2,zero,bf16`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

LAYERS = 4
GLOBAL_BATCH = 8
MICRO_BATCH = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the groups, and what is switched on. The model and the data are the same in all layouts."""

    tp: int = 1
    cp: int = 1
    """Ranks that each have two chunks of every sequence."""
    pp: int = 1
    dp: int = 1
    ep: int = 1
    etp: int = 1
    virtual: int = 1
    """Model chunks on each stage."""
    first: int = 0
    """Layers of the first stage, if stages are uneven."""
    experts: int = 0
    kv: int = 0
    """Groups of keys and values, if fewer than heads."""
    mtp: int = 0
    """Layers that each predict one token further, with the last stage's own copy of the embeddings."""
    passes: int = 0
    """Micro-batches of a rank in a step, however many samples each then has; 0: as many as there are of `MICRO_BATCH`."""
    hidden: int = 32
    vocabulary: int = 64
    padded: bool = False
    """The vocabulary is padded to a multiple of 128 for each rank of tensor parallelism, as Megatron-LM pads it."""
    unit: int = 128
    """What it is padded to a multiple of, on one such rank."""
    sequence: int = 16
    """Positions of a sample."""
    steps: int = 10
    warmup: int = 0
    """Steps before the full learning rate; the first is then at 0."""
    seed: int = 0
    """Of the first weights and of the data."""
    own: bool = False
    """Each rank draws its first weights by itself, so that no two ranks and no two layouts begin alike."""
    owndata: bool = False
    """Each rank draws its batches by itself."""
    sp: bool = False
    zero: bool = False
    """The distributed optimizer."""
    overlap: bool = False
    """Gradients are reduced during the backward pass."""
    gather: bool = False
    """With the two before: updated parameters are gathered during the next forward pass."""
    recompute: bool = False
    bf16: bool = False
    fp16: bool = False
    """With a scaled loss, which overflows at first, so that updates are left out."""
    scale: int = 2**20
    """Of the loss in float16, at first. It halves at each overflow, from the second on."""
    dropout: bool = False
    untied: bool = False
    swiglu: bool = False
    rms: bool = False
    rope: bool = False
    nobias: bool = False
    """Linear layers have no biases. Those of experts never have."""
    clipped: bool = False
    """Gradients are clipped to a norm that they do not have by far."""
    sink: bool = False
    """Attention has a learned offset for each head."""
    bias: bool = False
    """Routers balance experts by a bias, and not by a loss."""
    qknorm: bool = False
    """Queries and keys are normalized."""
    capacity: bool = False
    """Experts take at most their even share of tokens; others are dropped."""
    noaux: bool = False
    """Experts without an auxiliary loss. That loss is one of a rank's micro-batch, so that it changes with the data-parallel size."""
    frozen: bool = False
    """The word embeddings ask for no gradient from when the model is wrapped, before the optimizer is built."""
    tokens: bool = False
    """The loss is a mean over tokens, not over micro-batches."""
    masked: bool = False
    """The first quarter of each sequence is a prompt, whose tokens the loss leaves out."""

    def __str__(self) -> str:
        said = ((field, getattr(self, field.name)) for field in fields(self))
        words = (
            field.name if value is True else f"{field.name}={value}"
            for field, value in said
            if value != field.default
        )
        return ",".join(words)

    @property
    def world(self) -> int:
        """How many processes it takes."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def rows(self) -> int:
        """How many rows an embedding has, padding included."""
        unit = self.unit * self.tp if self.padded else 1
        return -(-self.vocabulary // unit) * unit

    @property
    def microbatches(self) -> int:
        """How many one rank passes in a step."""
        return self.passes or GLOBAL_BATCH // (MICRO_BATCH * self.dp)

    @property
    def microbatch(self) -> int:
        """How many samples each has."""
        return GLOBAL_BATCH // (self.microbatches * self.dp)

    @property
    def one_device(self) -> Layout:
        """The same model, whole and in float32, on one device. Its vocabulary is padded to the same size."""
        none = {"tp": 1, "cp": 1, "pp": 1, "dp": 1, "ep": 1, "etp": 1, "virtual": 1, "first": 0}
        off = ("sp", "zero", "overlap", "gather", "recompute", "bf16", "fp16", "tokens")
        unit = self.unit * self.tp if self.padded else self.unit
        return replace(self, unit=unit, **none, **dict.fromkeys(off, False))

    @staticmethod
    def parse(text: str) -> Layout:
        """The layout of a text; an empty text is one device. Raises ValueError for an unknown word.

        What is on or off may have a value: `sp` is `sp=true`.
        """
        known = {field.name: field.type for field in fields(Layout)}
        found: dict[str, int | bool] = {}
        for word in filter(None, text.split(",")):
            name, given, value = word.partition("=")
            switch = known.get(name) == "bool"
            if name not in known or (switch and given and value not in ("true", "false")):
                raise ValueError(f"{word!r} is no part of a layout")
            if not (switch or given):
                raise ValueError(f"{word!r} has no number")
            found[name] = value != "false" if switch else int(value)
        return Layout(**found)
