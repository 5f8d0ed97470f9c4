"""Whether the graph of an output shows that no place sees later ones."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tspec.runtime.live.losses.causality import Causality, Sight, sight_of
from tspec.runtime.live.losses.graph import PASSES
from tspec.runtime.live.losses.tokens import TokenHistory
from tspec.runtime.live.sampling import TrainingSampling

LENGTH = 6
LATER = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
Q = torch.randn(2, 3, LENGTH, 4, requires_grad=True)
X = torch.randn(2, LENGTH, 8, requires_grad=True)


NO_TOKENS = torch.zeros(0)
"""Of graphs without an embedding all attention counts."""


def sight(output: torch.Tensor, tokens: torch.Tensor = NO_TOKENS) -> Sight | None:
    return sight_of(output.grad_fn, tokens)


def by_hand(mask: torch.Tensor | None) -> torch.Tensor:
    scores = Q @ Q.mT
    return (scores if mask is None else scores.masked_fill(mask, -1e4)).softmax(-1) @ Q


def fused(**options: object) -> torch.Tensor:
    return F.scaled_dot_product_attention(Q, Q, Q, **options)


def layer(mask: torch.Tensor | None, **options: bool) -> torch.Tensor:
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    return attention(X, X, X, attn_mask=mask, **options)[0]


CAUSAL = {
    "by hand": lambda: by_hand(LATER),
    "fused": lambda: fused(is_causal=True),
    "fused, masked": lambda: fused(attn_mask=~LATER),
    "fused, added": lambda: fused(attn_mask=torch.zeros_like(LATER).float().masked_fill(LATER, -1e9)),
    "fused, dropout": lambda: fused(is_causal=True, dropout_p=0.1),
    "layer": lambda: layer(LATER, need_weights=False),
    "layer with weights": lambda: layer(LATER),
    "fused, checkpoint": lambda: checkpoint(lambda x: fused(is_causal=True) + x, Q, use_reentrant=False),
    "twice": lambda: by_hand(LATER) + fused(is_causal=True),
}  # fmt: skip
NOT_CAUSAL = {
    "by hand": lambda: by_hand(None),
    "padding": lambda: by_hand(torch.arange(LENGTH) > 4),
    "fused": lambda: fused(),
    "fused, padding": lambda: fused(attn_mask=torch.arange(LENGTH).expand(LENGTH, -1) < 5),
    "fused, dropout": lambda: fused(dropout_p=0.1),
    "layer": lambda: layer(None, need_weights=False),
    "layer with weights": lambda: layer(None),
    "one that is masked, one that is not": lambda: by_hand(LATER) + fused(),
}
UNKNOWN = {
    "no attention": lambda: X.sigmoid(),
    "across": lambda: F.scaled_dot_product_attention(Q, Q[:, :, :2], Q[:, :, :2]),
    "a short sequence": lambda: F.scaled_dot_product_attention(*[Q[:, :, :2]] * 3),
    "checkpoint": lambda: checkpoint(by_hand, LATER, use_reentrant=False),
    "fused, checkpoint": lambda: checkpoint(lambda x: fused() + x, Q, use_reentrant=False),
    "no graph": lambda: by_hand(LATER).detach(),
}  # fmt: skip


def attend(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


START = torch.zeros(2, 1, 8)
MOVED = {
    "the start goes before": lambda: attend(torch.cat([START, X[:, :-1]], 1)),
    "padded": lambda: attend(F.pad(X, (0, 0, 1, -1))),
    "rolled": lambda: attend(X.roll(1, 1)),
    "interleaved": lambda: attend(torch.stack([X, X + 1], 2).flatten(1, 2)),
    "written": lambda: attend(torch.zeros(2, 6, 8).index_put((torch.tensor([0]),), X[0])),
    "logits": lambda: torch.cat([START, attend(X)[:, :-1]], 1),
}


@pytest.mark.parametrize("compute", MOVED.values(), ids=MOVED)
def test_models_that_move_places(compute) -> None:
    assert sight(compute()) is None


def test_what_is_joined_within_a_place() -> None:
    turned = torch.cat([-X[..., 4:], X[..., :4]], -1)
    assert sight(attend(X + turned)) is Sight.NONE
    assert sight(attend(torch.stack([X, turned], -1).flatten(2))) is Sight.NONE


@pytest.mark.parametrize("compute", CAUSAL.values(), ids=CAUSAL)
def test_later_places_are_masked(compute) -> None:
    assert sight(compute()) is Sight.NONE


@pytest.mark.parametrize("compute", NOT_CAUSAL.values(), ids=NOT_CAUSAL)
def test_later_places_are_seen(compute) -> None:
    assert sight(compute()) is Sight.NEXT


@pytest.mark.parametrize("compute", UNKNOWN.values(), ids=UNKNOWN)
def test_the_graph_does_not_show_it(compute) -> None:
    assert sight(compute()) is None


def lstm(x: torch.Tensor, start: object = None, **options: object) -> tuple:
    return nn.LSTM(x.shape[-1], 8, batch_first=True, **options)(x, start)


HEAD = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 5))


def embed() -> torch.Tensor:
    """Tokens and their places, as a model embeds them."""
    return nn.Embedding(9, 8)(torch.randint(9, (2, LENGTH))) + nn.Embedding(LENGTH, 8)(
        torch.arange(LENGTH)
    )


def test_recurrent_layers_that_run_forward() -> None:
    embedded = embed()
    assert sight(HEAD(F.dropout(lstm(embedded)[0], 0.1))) is Sight.NONE
    assert sight(HEAD(lstm(embedded, num_layers=2)[0]).flatten(0, 1)) is Sight.NONE
    assert sight(lstm(embedded, bidirectional=True)[0]) is not Sight.NONE


@pytest.mark.parametrize("layer", [nn.GRU, nn.RNN])
def test_recurrent_layers_that_are_loops(layer) -> None:
    embedded = embed()
    assert sight(HEAD(layer(8, 8, batch_first=True)(embedded)[0])) is Sight.NONE
    assert sight(HEAD(layer(8, 8, num_layers=2)(embedded.mT.mT)[0])) is Sight.NONE
    assert sight(HEAD(layer(8, 8, bidirectional=True)(embedded)[0][..., :8])) is not Sight.NONE
    state = layer(8, 8, batch_first=True)(embedded)[1]
    decoder = layer(8, 8, batch_first=True)
    assert sight(HEAD(decoder(embedded, state)[0])) is None
    assert sight(HEAD(decoder(embedded.flip(1))[0].flip(1))) is not Sight.NONE


def test_cells_that_a_script_calls() -> None:
    embedded, cell = embed(), nn.GRUCell(8, 8)

    def called(order: range) -> torch.Tensor:
        state, states = torch.zeros(2, 8), {}
        for place in order:
            state = cell(embedded[:, place], state)
            states[place] = state
        return torch.stack([states[place] for place in range(LENGTH)], 1)

    assert sight(HEAD(called(range(LENGTH)))) is Sight.NONE
    assert sight(HEAD(called(range(LENGTH - 1, -1, -1)))) is None
    assert sight(nn.Linear(8, 5)(called(range(LENGTH)))) is Sight.NONE


def test_models_that_look_at_one_token() -> None:
    assert sight(HEAD(embed())) is Sight.NONE
    assert sight(HEAD(embed()).flatten(0, 1)) is Sight.NONE


def test_codes_of_whole_sequences() -> None:
    output, (state, cell) = lstm(embed())
    flat = nn.Linear(8 * LENGTH, 4)(embed().flatten(1)).relu()
    assert sight(nn.Linear(4, 5 * LENGTH)(flat).view(2, LENGTH, 5)) is None
    assert sight(nn.Linear(8 * LENGTH, 5 * LENGTH)(output.flatten(1)).view(2, LENGTH, 5)) is None
    assert sight(nn.Linear(8, 5 * LENGTH)(state[-1]).view(2, LENGTH, 5)) is None
    assert sight(nn.Linear(8, 5 * LENGTH)(output[:, -1]).view(2, LENGTH, 5)) is None
    assert sight(HEAD(lstm(output[:, -1:].expand(-1, LENGTH, -1))[0])) is None
    assert sight(HEAD(lstm(output.mean(1, keepdim=True).repeat(1, LENGTH, 1))[0])) is None
    assert sight(HEAD(lstm(embed(), (state, cell))[0])) is not Sight.NONE


def test_attention_of_a_recurrent_decoder_to_an_encoder() -> None:
    encoded, (state, cell) = lstm(nn.Embedding(9, 8)(OTHERS))
    tokens = TOKENS
    rows = WORDS(tokens)
    decoders = nn.LSTM(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)
    for decoder, begin in zip(decoders, ((state, cell), state), strict=True):
        output = decoder(rows, begin)[0]
        scores = (output @ encoded.mT / 8**0.5).masked_fill(OTHERS[:, None] == 0, -1e9)
        attended = torch.cat([output, scores.softmax(-1) @ encoded], -1)
        assert sight(nn.Linear(16, 9)(attended), tokens) is Sight.NONE
        # Places beside each other are weighed, or are one query's keys.
        assert (
            sight(nn.Linear(16, 9)(torch.cat([output, scores.softmax(1) @ encoded], -1)), tokens)
            is None
        )
        assert sight(nn.Linear(8, 9)(scores.mT @ output), tokens) is None


def test_later_outputs_are_not_read() -> None:
    tokens = torch.arange(2 * 20).reshape(2, 20)
    history = TokenHistory()
    history.given(tokens)
    seen = Causality(history, TrainingSampling())
    output = nn.Linear(8, 50)(nn.Embedding(50, 8)(tokens))
    found = [seen.sees_later(output, tokens, -100) for _ in range(PASSES + 1)]
    assert found == ["none"] * PASSES + [None]


def test_evaluations_before_are_not_counted() -> None:
    tokens = torch.arange(2 * 20).reshape(2, 20)
    history = TokenHistory()
    history.given(tokens)
    seen, model = (
        Causality(history, TrainingSampling()),
        nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50)),
    )
    with torch.no_grad():
        for _ in range(PASSES + 1):
            assert history.tokens_ahead(tokens, -100) == 0
            assert seen.sees_later(model(tokens), tokens, -100) is None
    assert not history.is_over()
    assert seen.sees_later(model(tokens), tokens, -100) == "none"


def test_only_places_whose_labels_count() -> None:
    """Two sequences in a row: a place sees all of its own one, and what comes before."""
    tokens = torch.arange(2 * 20).reshape(2, 20)
    target = torch.cat([tokens[:, 1:], torch.full((2, 1), -100)], 1)
    history, model = TokenHistory(), nn.Embedding(50, 8)
    history.given(tokens)
    own = torch.arange(20) // 10
    causal = torch.ones(20, 20, dtype=torch.bool).tril()
    for ends, mask, expected in (
        (True, causal | (own == own[:, None]), "next"),
        (False, causal | (own == own[:, None]), "some"),
        (True, causal | (torch.arange(20) < 4), "some"),
        (True, causal, "none"),
    ):
        x = model(tokens)
        output = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        labels = target.masked_fill(torch.arange(20) == 9, -100) if ends else target
        assert Causality(history, TrainingSampling()).sees_later(output, labels, -100) == expected


def test_targets_that_are_no_tokens() -> None:
    assert (
        Causality(TokenHistory(), TrainingSampling()).sees_later(
            by_hand(LATER), torch.arange(12), -100
        )
        is None
    )


TOKENS, OTHERS = torch.randint(9, (2, 2, LENGTH))
WORDS = nn.Embedding(9, 8)


def decoded(mask: torch.Tensor | None, *, over: torch.Tensor = OTHERS) -> torch.Tensor:
    """What a decoder of `TOKENS` puts out, beside an encoder of other tokens that looks at all of them."""
    source, target = WORDS(over), WORDS(TOKENS)
    memory = F.scaled_dot_product_attention(source, source, source)
    memory = torch.cat([memory[:, 1:], memory[:, :1]], 1)
    own = F.scaled_dot_product_attention(target, target, target, attn_mask=mask)
    by_products = (own @ memory.mT).softmax(-1) @ memory
    return F.scaled_dot_product_attention(own, memory, memory) + by_products


def test_only_what_attends_to_the_tokens_counts() -> None:
    assert sight(decoded(~LATER), TOKENS) is Sight.NONE
    assert sight(decoded(None), TOKENS) is Sight.NEXT
    assert sight(decoded(~LATER), OTHERS) is None  # the encoder's output is moved
    assert sight(decoded(None, over=TOKENS), TOKENS) is None


def test_prefixes_that_are_seen_whole() -> None:
    prefix = ~LATER
    prefix[:, :3] = True
    assert sight(fused(attn_mask=prefix)) is Sight.SOME
    assert sight(by_hand(~prefix)) is Sight.SOME


def test_padding_is_seen_by_none() -> None:
    hidden = LATER.clone()
    hidden[:, 4:] = True
    assert sight(by_hand(hidden)) is Sight.NONE
    assert sight(by_hand((torch.arange(LENGTH) > 3).expand(LENGTH, -1))) is Sight.NEXT
