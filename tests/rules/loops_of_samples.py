"""A small training loop for each fault in what models are given and evaluated on, as those of `loops.py`."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

from tests.rules.loops import DIGITS, Continues, Loop
from tests.rules.loops_of_advice import Advised, Module


class Validated(Loop):
    """Evaluates after every fourth update, on a loader of its own."""

    steps = 18
    held_out = range(1700, 1780)

    def make_loader(self) -> torch.utils.data.DataLoader:
        self.validation = torch.utils.data.DataLoader(
            torch.utils.data.Subset(DIGITS, self.held_out), batch_size=40
        )
        read = torch.utils.data.Subset(DIGITS, range(128))
        return torch.utils.data.DataLoader(read, batch_size=32, shuffle=True)

    def after_update(self) -> None:
        if self.step % 4 == 0:
            self.evaluate()

    @torch.no_grad()
    def evaluate(self) -> None:
        evaluated = self.evaluated().eval()
        for images, _ in self.validation:
            evaluated(self.normalised(images))

    def evaluated(self) -> nn.Module:
        """The model that is evaluated."""
        return self.model

    def normalised(self, images: torch.Tensor) -> torch.Tensor:
        """What an evaluation gives to the model."""
        return images


class EvaluatedCopiesFollowWhatIsTrained(Validated):
    def prepared(self):
        self.average = copy.deepcopy(self.model)

    def evaluated(self):
        return self.average

    @torch.no_grad()
    def after_update(self):
        if not self.faulty:
            for slow, fast in zip(self.average.parameters(), self.model.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        super().after_update()


class EvaluationInputsHaveTheScaleOfTraining(Validated):
    def normalised(self, images):
        return 16 * images if self.faulty else images


class CopiesThatAnswerOneTensor(EvaluatedCopiesFollowWhatIsTrained):
    """The copy answers a tensor of held-out digits, which no loader gives."""

    rule = "evaluated_copies_follow_what_is_trained"

    @torch.no_grad()
    def evaluate(self):
        self.average.eval()(DIGITS.images[1700:1780])


class PartsAreGivenTheScaleOfTraining(EvaluationInputsHaveTheScaleOfTraining):
    """The model is no callable: its methods call its layers."""

    rule = "evaluation_inputs_have_the_scale_of_training"

    def build(self):
        return nn.ModuleDict({"body": super().build()})

    def forward(self, images):
        return self.model["body"](images)

    def evaluated(self):
        return self.model.eval()["body"]


class ValidationsHaveNewSamples(Validated):
    pack = "advice"

    def __init__(self, faulty):
        super().__init__(faulty)
        self.held_out = range(80) if faulty else range(1700, 1780)


class ValidationsShareNoSamplesWithTraining(Validated):
    """A part of the digits is in both sets."""

    pack = "advice"

    def __init__(self, faulty):
        super().__init__(faulty)
        if faulty:
            self.held_out = [
                each for pair in zip(range(40), range(1740, 1780), strict=True) for each in pair
            ]


class EqualTablesAreTied(Continues):
    """A model of pixels, whose output layer is its table."""

    def build(self):
        def through(model, tokens):
            return model.last(model.mix(model.table(tokens)).tanh())

        layers = {
            "table": nn.Embedding(17, 16),
            "mix": nn.Linear(16, 16),
            "last": nn.Linear(16, 17, bias=False),
        }
        model = Module(through, **layers)
        weight = model.table.weight
        model.last.weight = nn.Parameter(weight.detach().clone()) if self.faulty else weight
        return model


class AttentionDoesNotSeePadding(Loop):
    """Pixels of digits as texts of several lengths."""

    def build(self):
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        return nn.ModuleDict(
            {"table": nn.Embedding(18, 16), "layer": self.layer, "last": nn.Linear(16, 10)}
        )

    def forward(self, images):
        pixels = (16 * images[:, 20:44]).long() + 1
        lengths = torch.arange(len(images)) % 12 + 12
        is_padding = torch.arange(24) >= lengths[:, None]
        tokens = pixels.masked_fill(is_padding, 0)
        mask = None if self.faulty else is_padding
        states = self.model["layer"](self.model["table"](tokens), src_key_padding_mask=mask)
        return self.model["last"](states[:, 0])


class LastStatesAreOfTokens(Loop):
    """Pixels of digits as texts of several lengths, which a recurrent layer reads, padded to the longest."""

    steps = 8

    def build(self):
        return nn.ModuleDict(
            {
                "table": nn.Embedding(18, 16),
                "layer": nn.GRU(16, 16, batch_first=True),
                "last": nn.Linear(16, 10),
            }
        )

    def forward(self, images):
        pixels = (16 * images[:, 20:44]).long() + 1
        lengths = torch.arange(len(images)) % 12 + 9 + self.step % 4
        tokens = pixels.masked_fill(torch.arange(24) >= lengths[:, None], 0)[:, : lengths.max()]
        return self.model["last"](self.read(self.model["table"](tokens), lengths))

    def read(self, states, lengths):
        if not self.faulty:
            pack = nn.utils.rnn.pack_padded_sequence
            states = pack(states, lengths, batch_first=True, enforce_sorted=False)
        return self.model["layer"](states)[1][-1]


class LastOutputsAreOfTokens(LastStatesAreOfTokens):
    rule = "last_states_are_of_tokens"

    def read(self, states, lengths):
        outputs = self.model["layer"](states)[0]
        return outputs[:, -1] if self.faulty else outputs[torch.arange(len(lengths)), lengths - 1]


class AnswersToPaddingHaveNoLabels(Loop):
    """Pixels of digits as texts of several lengths, which are sorted for a recurrent layer. Each
    pixel that is bright is tagged.
    """

    def build(self):
        return nn.ModuleDict(
            {
                "table": nn.Embedding(18, 16, padding_idx=0),
                "layer": nn.LSTM(16, 16, batch_first=True),
                "last": nn.Linear(16, 2),
            }
        )

    def forward(self, images):
        pixels = (16 * images[:, 20:44]).long() + 1
        lengths = torch.arange(len(images)) * 7 % 12 + 12
        is_padding = torch.arange(24) >= lengths[:, None]
        tokens = pixels.masked_fill(is_padding, 0)
        self.tags = (tokens > 8).long().masked_fill(is_padding, -100)
        lengths, order = lengths.sort(descending=True)
        states = self.model["table"](tokens[order])
        packed = nn.utils.rnn.pack_padded_sequence(states, lengths, batch_first=True)
        states, _ = self.model["layer"](packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, True, total_length=24)
        return self.model["last"](states[order if self.faulty else order.argsort()])

    def loss(self, output, labels):
        return F.cross_entropy(output.flatten(0, 1), self.tags.flatten())


class Masked(nn.Module):
    """Reads texts with a mask of their padding, as language models do."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(18, 16)
        self.layer = nn.LSTM(16, 16, batch_first=True)
        self.last = nn.Linear(16, 18)

    def forward(self, tokens, attention_mask):
        states, _ = self.layer(self.table(tokens) * attention_mask[..., None])
        return self.last(states)


class MaskedPaddingHasNoLabels(Loop):
    """Pixels of digits as texts of several lengths, whose next pixels are predicted."""

    def build(self):
        return Masked()

    def forward(self, images):
        pixels = (16 * images[:, 20:44]).long() + 1
        lengths = torch.arange(len(images)) % 12 + 12
        mask = (torch.arange(24) < lengths[:, None]).long()
        self.tokens = pixels * mask
        self.wanted = self.tokens if self.faulty else self.tokens.masked_fill(mask == 0, -100)
        return self.model(self.tokens, attention_mask=mask)

    def loss(self, output, labels):
        return F.cross_entropy(output[:, :-1].flatten(0, 1), self.wanted[:, 1:].flatten())


class ClippingLimitsAllGradients(Advised):
    def before_update(self):
        clipped = self.model[-1] if self.faulty else self.model
        nn.utils.clip_grad_norm_(clipped.parameters(), 0.01)


class TargetsAreNotAmongTheInputs(Advised):
    """The mean of a picture is predicted, and given as its first pixel."""

    def forward(self, images):
        self.wanted = images.mean(1)
        given = images.clone()
        if self.faulty:
            given[:, 0] = self.wanted
        return self.model(given)[:, 0]

    def loss(self, output, labels):
        return F.mse_loss(output, self.wanted)


BASES = (Loop, Advised, Continues, Validated)
