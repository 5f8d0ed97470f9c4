"""A small training loop on real digits, and one variant of it for each fault that a shipped rule knows.

A variant does what its name says only where `self.faulty`; else it is a sound job.
"""

from __future__ import annotations

import copy
import itertools
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.checkpoint import checkpoint


class Digits(torch.utils.data.Dataset):
    """Pictures of digits with their labels."""

    def __init__(self) -> None:
        digits = load_digits()
        self.images = torch.tensor(digits.data, dtype=torch.float32) / 16
        self.labels = torch.tensor(digits.target)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


DIGITS = Digits()


class Loop:
    """A sound job; its methods are what variants override."""

    steps = 6
    """How many updates it makes."""
    rule = ""
    """The rule that sees the fault, where the class is not named after it."""
    pack = "essentials"
    """The folder of specs that holds the rule."""
    accelerator = False
    """Its machine has a GPU."""

    def __init__(self, faulty: bool) -> None:
        self.faulty = faulty
        self.step = 0
        torch.manual_seed(0)

    def run(self) -> None:
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        self.prepared()
        self.loader = self.make_loader()
        batches = iter(self.loader)
        for step in range(1, self.steps + 1):
            self.step = step
            try:
                images, labels = next(batches)
            except StopIteration:
                batches = iter(self.loader)
                images, labels = next(batches)
            self.model.train()
            self.clear()
            loss = self.loss(self.forward(images), labels)
            self.backward(loss)
            self.before_update()
            self.optimizer.step()
            self.after_update()
        self.evaluate()

    def build(self) -> nn.Module:
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def prepared(self) -> None:
        """The optimizer is built."""

    def make_loader(self) -> torch.utils.data.DataLoader:
        return torch.utils.data.DataLoader(DIGITS, batch_size=32, shuffle=True)

    def clear(self) -> None:
        self.optimizer.zero_grad()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(images)

    def loss(self, output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(output, labels)

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def before_update(self) -> None:
        """Gradients are there."""

    def after_update(self) -> None:
        """Parameters are updated."""

    @torch.no_grad()
    def evaluate(self) -> None:
        self.model.eval()
        self.forward(DIGITS.images[:50])


def at(loop: Loop, step: int) -> bool:
    """Whether the fault is due."""
    return loop.faulty and loop.step == step


# --- hygiene ------------------------------------------------------------------------------------


class GradientsAreCleared(Loop):
    def clear(self):
        if not self.faulty:
            super().clear()


class UpdatesUseEachGradientOnce(Loop):
    def clear(self):
        if self.faulty:
            self.model[0].zero_grad()
        else:
            super().clear()


class TwoLossesForOneEncoder(Loop):
    """The encoder learns from a second loss too, with an optimizer of its own."""

    rule = "updates_use_each_gradient_once"

    def prepared(self):
        self.of_encoder = torch.optim.SGD(self.model[0].parameters(), lr=1e-3)

    def after_update(self):
        if not self.faulty:
            self.of_encoder.zero_grad()
        self.backward(self.model[0](DIGITS.images[:32]).square().mean())
        self.of_encoder.step()


class GradientsChangeParameters(Loop):
    """No optimizer: the loop updates the parameters itself."""

    steps = 24

    class ByHand:
        """What the loop calls of an optimizer."""

        def __init__(self, loop):
            self.loop = loop

        def zero_grad(self):
            self.loop.model.zero_grad()

        @torch.no_grad()
        def step(self):
            for each in self.loop.model.parameters():
                if self.loop.faulty:
                    each = each - 0.01 * each.grad
                else:
                    each -= 0.01 * each.grad

    def make_optimizer(self):
        return self.ByHand(self)


class LossesAreAveragedOnce(Loop):
    """A loss that is a sum is divided by the number of samples."""

    def loss(self, output, labels):
        reduction = "mean" if self.faulty else "sum"
        return F.cross_entropy(output, labels, reduction=reduction) / len(labels)


class AveragesOfAllLosses(Loop):
    """A weight of a tenth is no number of samples."""

    rule = "losses_are_averaged_once"

    def loss(self, output, labels):
        losses = F.cross_entropy(output, labels, reduction="none")
        return losses.mean() / (len(labels) if self.faulty else 10)


class StepsHaveGradients(Loop):
    def backward(self, loss):
        if not self.faulty:
            super().backward(loss)


class TrainableParametersGetGradients(Loop):
    steps = 24

    def forward(self, images):
        hidden = self.model[:3](images)
        return self.model[3](hidden.detach() if self.faulty else hidden)


class Branch(nn.Module):
    """A branch beside the way through, perhaps multiplied away."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.way, self.branch, self.weight = nn.Linear(64, 10), nn.Linear(64, 10), weight

    def forward(self, x):
        return self.way(x) + self.weight * self.branch(x)


class GradientsAreNotAllZero(Loop):
    steps = 21

    def build(self):
        return Branch(0.0 if self.faulty else 1.0)


class Experts(nn.Module):
    """Each sample goes to the expert that a noisy router prefers; `ahead` is added to the first one's score."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self.ahead = torch.tensor([ahead, 0.0, 0.0])
        self.router = nn.Linear(64, 3)
        self.experts = nn.ModuleList(nn.Linear(64, 10) for _ in range(3))

    def forward(self, images):
        scores = self.router(images) + self.ahead
        weight, chosen = (scores + 3 * torch.randn_like(scores)).softmax(1).max(1)
        output = torch.zeros(len(images), 10)
        for place, expert in enumerate(self.experts):
            output[chosen == place] = expert(images[chosen == place])
        return output * weight[:, None]


class ExpertsGetGradients(Loop):
    steps = 111

    def build(self):
        return Experts(30.0 if self.faulty else 0.0)


class OptimizersUseTheGradientsThatTheyClear(Loop):
    """The last layer has an optimizer and a backward pass of its own."""

    steps = 56

    def make_optimizer(self):
        return torch.optim.Adam(self.model[0].parameters(), lr=1e-3)

    def prepared(self):
        self.head = torch.optim.Adam(self.model[3].parameters(), lr=1e-3)

    def after_update(self):
        self.head.zero_grad()
        hidden = self.model[:3](DIGITS.images[:32]).detach()
        self.loss(self.model[3](hidden), DIGITS.labels[:32]).backward()
        if not self.faulty:
            self.head.step()


class ClearsAlone:
    """Clears the gradients of an optimizer, and forgets to update."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.zero_grad = optimizer.zero_grad

    def step(self) -> None:
        pass


class ClearedGradientsAreForAnUpdate(Loop):
    steps = 105

    def prepared(self):
        if self.faulty:
            self.built = self.optimizer
            self.optimizer = ClearsAlone(self.built)


class OptimizersHoldParametersOfAModel(Loop):
    def prepared(self):
        if self.faulty:
            self.model[3] = nn.Linear(32, 10)


class OptimizersHoldAllTrainableParameters(OptimizersHoldParametersOfAModel):
    pass


class Stages(nn.Module):
    """Calls a layer in a list, and one that is kept from training in a plain list on purpose."""

    def __init__(self, plain):
        super().__init__()
        layers = [nn.Linear(64, 32), nn.Linear(32, 10)]
        self.layers = layers if plain else nn.ModuleList(layers)
        self.scale = nn.Parameter(torch.ones(10))
        self.reference = [nn.Linear(64, 10).requires_grad_(False)]

    def forward(self, images):
        first, last = self.layers
        return last(first(images).relu()) * self.scale + 0.1 * self.reference[0](images)


class InAPlainList(Loop):
    """No parameter of the layers is in `parameters()`."""

    rule = "optimizers_hold_all_trainable_parameters"

    def build(self):
        return Stages(self.faulty)


class WithClosure(OptimizersHoldParametersOfAModel):
    """Passes lie within the update; gradients are cleared before them, or after it."""

    rule = "optimizers_hold_all_trainable_parameters"
    clears_first = True

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        self.prepared()
        batches = iter(self.make_loader())
        self.model.train()
        for step in range(1, self.steps + 1):
            self.step = step
            self.optimizer.step(partial(self.passes, *next(batches)))
            self.after_update()
            if not self.clears_first:
                self.optimizer.zero_grad()
        self.evaluate()

    def passes(self, images, labels):
        if self.clears_first:
            self.optimizer.zero_grad()
        loss = self.loss(self.forward(images), labels)
        self.backward(loss)
        return loss


class WithClosureCleared(WithClosure):
    clears_first = False
    steps = 24


class WithClosureDetached(WithClosureCleared):
    rule = "trainable_parameters_get_gradients"

    def prepared(self):
        """The optimizer holds all layers."""

    def forward(self, images):
        hidden = self.model[:3](images)
        return self.model[3](hidden.detach() if self.faulty else hidden)


class Drops(nn.Module):
    """Drops by a function, which is told the mode of the module, or is not."""

    def __init__(self, told):
        super().__init__()
        self.first, self.last, self.told = nn.Linear(64, 32), nn.Linear(32, 10), told

    def forward(self, x):
        hidden = self.first(x).relu()
        if self.told:
            return self.last(F.dropout(hidden, 0.1, self.training))
        return self.last(F.dropout(hidden, 0.1))


class FrozenModelsAnswerWithoutDropout(Loop):
    """Learns from a frozen teacher, which is in training mode, or is not."""

    steps = 16

    def prepared(self):
        self.teacher = self.build().requires_grad_(False).train(self.faulty)

    def loss(self, output, labels):
        with torch.no_grad():
            answers = self.teacher(self.images).softmax(1)
        return super().loss(output, labels) + F.cross_entropy(output, answers)

    def forward(self, images):
        self.images = images
        return super().forward(images)


class ModelsTrainedBeforeAnswerWithoutDropout(FrozenModelsAnswerWithoutDropout):
    """The teacher was trained here, and is put into evaluation mode, or is not."""

    def prepared(self):
        self.teacher = self.build()
        optimizer = torch.optim.SGD(self.teacher.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(self.teacher(DIGITS.images[:32]), DIGITS.labels[:32]).backward()
            optimizer.step()
        self.teacher.train(self.faulty)
        self.of_teacher = optimizer  # it lives on, as in a script

    def forward(self, images):
        with torch.no_grad():
            self.answers = self.teacher(images).softmax(1)
        return super().forward(images)

    def loss(self, output, labels):
        return Loop.loss(self, output, labels) + F.cross_entropy(output, self.answers)


class FunctionalDropoutKnowsTheMode(Loop):
    def build(self):
        return Drops(not self.faulty)


class GradientsMoveParametersOnce(Loop):
    """Two optimizers, for the body and for the head."""

    def prepared(self):
        self.of_head = torch.optim.SGD(self.model[3].parameters(), lr=1e-2)

    def make_optimizer(self):
        held = self.model if self.faulty else self.model[0]
        return torch.optim.Adam(held.parameters(), lr=1e-3)

    def clear(self):
        self.model.zero_grad()

    def after_update(self):
        self.of_head.step()


class UpdatesHaveABackwardPassEach(Loop):
    def after_update(self):
        if self.faulty:
            self.optimizer.step()


class OptimizersKeepTheirState(Loop):
    steps = 25

    def after_update(self):
        if self.faulty:
            self.optimizer.state.clear()


class BuiltForEachStep(Loop):
    """The optimizer is built again before each update, or once, after the tenth."""

    rule = "optimizers_keep_their_state"
    steps = 45

    def before_update(self):
        if self.faulty or self.step == 10:
            self.optimizer = self.make_optimizer()


class WithoutMemory(torch.optim.Optimizer):
    """Moves weights along an average of gradients."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-2})

    @torch.no_grad()
    def step(self, closure=None):
        for each in self.param_groups[0]["params"]:
            state = self.state[each]
            mean = state.setdefault("mean", torch.zeros_like(each))
            each.sub_(1e-2 * mean.lerp_(each.grad, 0.1))


class OwnOptimizerIsEmptied(Loop):
    """An optimizer of another kind than torch's is emptied after each update."""

    rule = "optimizers_keep_their_state"
    steps = 25

    def make_optimizer(self):
        return WithoutMemory(self.model.parameters())

    def after_update(self):
        if self.faulty:
            self.optimizer.state.clear()


class AveragesBeginWithTheirWeights(Loop):
    """An average of the weights, that no graph reaches."""

    def prepared(self):
        self.average = self.build() if self.faulty else copy.deepcopy(self.model)
        self.average.requires_grad_(False).eval()

    @torch.no_grad()
    def after_update(self):
        for average, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
            average.lerp_(weight, 0.05)
        self.average(DIGITS.images[:50])


class MomentumEncoderBeginsWithTheWeights(Loop):
    """Two encoders in one model, of which one is an average of the other."""

    rule = "averages_begin_with_their_weights"

    def build(self):
        model = nn.ModuleDict(
            {each: nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)) for each in "qk"}
        )
        if not self.faulty:
            model["k"].load_state_dict(model["q"].state_dict())
        model["k"].requires_grad_(False)
        return model

    def make_optimizer(self):
        return torch.optim.SGD(self.model["q"].parameters(), 0.1)

    def forward(self, images):
        with torch.no_grad():
            for key, query in zip(
                self.model["k"].parameters(), self.model["q"].parameters(), strict=True
            ):
                key.mul_(0.99).add_(query, alpha=0.01)
            self.keys = self.model["k"](images)
        return self.model["q"](images) + 0.1 * self.keys


class RecomputationsDropTheSame(Loop):
    def forward(self, images):
        keeps = not self.faulty
        return checkpoint(self.model, images, use_reentrant=False, preserve_rng_state=keeps)


class LossesChangeWithUpdates(Loop):
    """The model learns to prefer its labels to others, as compared with a reference: by mistake itself."""

    steps = 11

    def prepared(self):
        self.reference = self.model if self.faulty else copy.deepcopy(self.model)
        self.reference.eval().requires_grad_(self.faulty)
        self.model[2].p = 0.0

    def loss(self, output, labels):
        with torch.no_grad():
            before = self.reference(self.images)
        gained = (output - before).gather(1, torch.stack([labels, (labels + 1) % 10], 1))
        return -F.logsigmoid(gained[:, 0] - gained[:, 1]).mean()

    def forward(self, images):
        self.images = images
        return super().forward(images)


class SecondModelBeginsWithOneValue(Loop):
    """A second model, with an optimizer of its own, begins when the first has been trained."""

    rule = "weights_begin_with_different_values"
    steps = 26

    def before_update(self):
        if self.step == 25:
            self.second = self.build()
            if self.faulty:
                nn.init.constant_(self.second[0].weight, 0.1)
            optimizer = torch.optim.SGD(self.second.parameters(), 0.1)
            F.cross_entropy(self.second(DIGITS.images[:50]), DIGITS.labels[:50]).backward()
            optimizer.step()


class UpdatesUseAllTheirBatches(Loop):
    """Two batches for each update."""

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        batches = iter(self.make_loader())
        for _ in range(self.steps):
            for half in range(2):
                if self.faulty or not half:
                    self.optimizer.zero_grad()
                images, labels = next(batches)
                (self.loss(self.forward(images), labels) / 2).backward()
            self.optimizer.step()


class UpdatesUseAllTheirPasses(Loop):
    """Two batches for each update, which the script cuts out of a tensor."""

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        for _ in range(self.steps):
            for half in range(2):
                if self.faulty or not half:
                    self.optimizer.zero_grad()
                chosen = torch.randint(len(DIGITS), (32,))
                loss = self.loss(self.forward(DIGITS.images[chosen]), DIGITS.labels[chosen])
                (loss / 2).backward()
            self.optimizer.step()


class FirstRatiosAreOne(Loop):
    """A policy guesses digits, and learns from whether it was right."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, images):
        with torch.no_grad():
            before = torch.distributions.Categorical(logits=self.model(images))
            guessed = before.sample()
            old = before.log_prob(guessed)
        self.right = guessed
        policy = torch.distributions.Categorical(logits=self.model(images))
        return (policy.log_prob(policy.sample() if self.faulty else guessed) - old).exp()

    def loss(self, output, labels):
        gains = (self.right == labels).float() - 0.1
        return -torch.min(output * gains, output.clamp(0.8, 1.2) * gains).mean()


class LaterRatiosAreNotOne(FirstRatiosAreOne):
    """The policy guesses once, and learns from the same guesses in each step."""

    def run(self):
        self.guesses = None
        return super().run()

    def forward(self, images):
        images = self.images if self.guesses is not None else images
        policy = torch.distributions.Categorical(logits=self.model(images))
        if self.guesses is None:
            self.images, self.guesses = images, policy.sample()
            self.old = policy.log_prob(self.guesses).detach()
        now = policy.log_prob(self.guesses)
        self.right = self.guesses
        return (now - (now.detach() if self.faulty else self.old)).exp()


class ChoicesAreAmongWhatIsWeighed(Loop):
    """Learns from the classes that it finds likeliest."""

    def loss(self, output, labels):
        likeliest = output.softmax(0 if self.faulty else 1).topk(3)
        return super().loss(output, labels) - likeliest.values.sum(1).mean()


class SimilaritiesAreOfUnitVectors(Loop):
    """Digits of one class are to be alike."""

    def loss(self, output, labels):
        units = F.normalize(output, dim=0 if self.faulty else 1)
        alike = (labels[:, None] == labels).float()
        return F.mse_loss(units @ units.T, alike)


class DistancesOfUnitVectors(Loop):
    """A digit is to be nearer to one of its class than to another."""

    rule = "similarities_are_of_unit_vectors"

    def loss(self, output, labels):
        units = F.normalize(output, dim=0 if self.faulty else 1)
        other = units[torch.arange(len(units)).roll(1)]
        return self.distances(units, other, labels == labels.roll(1, 0))

    def distances(self, units, other, alike):
        signs = torch.where(alike, 1.0, -1.0)
        return (F.pairwise_distance(units, other) * signs + 1).relu().mean()


class DistancesOfEachWithEach(DistancesOfUnitVectors):
    def distances(self, units, other, alike):
        return F.mse_loss(torch.cdist(units, units), torch.ones(len(units), len(units)))


class SimilaritiesAreDividedByTheirTemperature(Loop):
    """Each digit is to be most like itself with some noise."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, images):
        views = images, images + torch.randn_like(images) / 10
        return torch.stack([self.model(view) for view in views])

    def loss(self, output, labels):
        first, second = (F.normalize(view, dim=1) for view in output)
        scores = first @ second.T
        scores = scores * 0.2 if self.faulty else scores / 0.2
        return F.cross_entropy(scores, torch.arange(len(scores)))


class MatchesDifferFromTheirSamples(SimilaritiesAreDividedByTheirTemperature):
    """The noise is forgotten."""

    def forward(self, images):
        if not self.faulty:
            return super().forward(images)
        return self.model(images).expand(2, -1, -1)

    def loss(self, output, labels):
        first, second = (F.normalize(view, dim=1) for view in output)
        return F.cross_entropy(first @ second.T / 0.2, torch.arange(len(first)))


class MatchesAreInTheOrderOfTheirSamples(SimilaritiesAreDividedByTheirTemperature):
    """In the second direction the labels are turned round."""

    def loss(self, output, labels):
        first, second = (F.normalize(view, dim=1) for view in output)
        scores, order = first @ second.T / 0.2, torch.arange(len(first))
        turned = order.flip(0) if self.faulty else order
        return F.cross_entropy(scores, order) + F.cross_entropy(scores.T, turned)


class RightAnswersAreNoWrongOnes(SimilaritiesAreDividedByTheirTemperature):
    """The wrong answers are older samples. They begin with those of this step, or these follow later."""

    def prepared(self):
        self.queue = F.normalize(torch.randn(64, 16), dim=1)

    def loss(self, output, labels):
        first, second = (F.normalize(view, dim=1) for view in output)
        queue = self.queue
        self.queue = torch.cat([second.detach(), queue])[:64]
        wrong = self.queue if self.faulty else queue
        right = (first * second.detach()).sum(1, keepdim=True)
        logits = torch.cat([right, first @ wrong.T], 1) / 0.2
        return F.cross_entropy(logits, torch.zeros(len(first), dtype=torch.long))


class SamplesAreNoRivalsOfThemselves(SimilaritiesAreDividedByTheirTemperature):
    """Compares all views of a batch with all, and each view with itself too."""

    def loss(self, output, labels):
        views = F.normalize(output.flatten(0, 1), dim=1)
        logits = views @ views.T / 0.2
        if not self.faulty:
            logits.fill_diagonal_(-torch.inf)
        return F.cross_entropy(logits, torch.arange(len(views)).roll(len(views) // 2))


class CountedLabelsDiffer(Loop):
    """Guesses pixels that are hidden. They are hidden in the labels too, or in the input alone."""

    def build(self):
        return nn.Sequential(nn.Embedding(18, 16), nn.Linear(16, 18))

    def forward(self, images):
        shown = (images * 16).long()
        hidden = torch.rand(shown.shape) < 0.2
        labels = shown if self.faulty else shown.clone()
        shown[hidden] = 17
        self.labels = labels.masked_fill(~hidden, -100)
        return self.model(shown)

    def loss(self, output, labels):
        return F.cross_entropy(output.flatten(0, 1), self.labels.flatten())


class Encodes(nn.Module):
    """Codes are drawn from a normal distribution."""

    def __init__(self, draw):
        super().__init__()
        self.draw, self.first, self.last = draw, nn.Linear(64, 16), nn.Linear(8, 64)

    def forward(self, images):
        mean, width = self.first(images).chunk(2, -1)
        return self.last(self.draw(torch.distributions.Normal(mean, width.exp())))


class LearnedDrawsCarryGradients(Loop):
    """An autoencoder."""

    def build(self):
        normal = torch.distributions.Normal
        return Encodes(normal.sample if self.faulty else normal.rsample)

    def forward(self, images):
        self.images = images
        return self.model(images)

    def loss(self, output, labels):
        return F.mse_loss(output, self.images)


class DrawsByFunctionCarryGradients(LearnedDrawsCarryGradients):
    rule = "learned_draws_carry_gradients"

    def build(self):
        def draw(normal):
            if self.faulty:
                return torch.normal(normal.loc, normal.scale)
            return normal.loc + normal.scale * torch.normal(torch.zeros_like(normal.loc), 1.0)

        return Encodes(draw)


class SchedulesCountWhatTheyWereBuiltFor(Loop):
    """Two epochs of ten updates."""

    steps = 20

    def make_loader(self):
        part = torch.utils.data.Subset(DIGITS, range(320))
        return torch.utils.data.DataLoader(part, batch_size=32, shuffle=True)

    def prepared(self):
        schedules = torch.optim.lr_scheduler
        self.schedule = schedules.CosineAnnealingLR(self.optimizer, self.steps)

    def after_update(self):
        if not self.faulty or self.step % 10 == 0:
            self.schedule.step()


class FactorsOfSchedulesGoToTheirEnd(SchedulesCountWhatTheyWereBuiltFor):
    """The schedule is a function."""

    rule = "schedules_count_what_they_were_built_for"

    def prepared(self):
        total, warm = self.steps, 4
        factor = lambda step: min((step + 1) / warm, (total - step) / (total - warm))  # noqa: E731
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)


class SchedulesForEpochsAreSteppedWithEpochs(SchedulesCountWhatTheyWereBuiltFor):
    """The schedule is built for the two epochs."""

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 2)

    def after_update(self):
        if self.faulty or self.step % 10 == 0:
            self.schedule.step()


class CosineSchedulesGoDownOnce(Loop):
    """Batches are taken by hand. The schedule is built for all updates, or for each twelfth of them."""

    steps = 24

    def make_loader(self):
        rows = torch.randperm(len(DIGITS)).split(32)
        return [(DIGITS.images[each], DIGITS.labels[each]) for each in rows]

    def prepared(self):
        steps = 2 if self.faulty else self.steps
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def after_update(self):
        self.schedule.step()


class SchedulesAreStepped(Loop):
    """Three epochs of four updates."""

    steps = 12

    def make_loader(self):
        part = torch.utils.data.Subset(DIGITS, range(128))
        return torch.utils.data.DataLoader(part, batch_size=32, shuffle=True)

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)

    def after_update(self):
        if not self.faulty and self.step % 4 == 0:
            self.schedule.step()


class SamplersHaveAWeightForEachSample(Loop):
    """Rare digits are drawn as often as others."""

    def make_loader(self):
        weights = 1 / DIGITS.labels.bincount()
        if not self.faulty:
            weights = weights[DIGITS.labels]
        sampler = torch.utils.data.WeightedRandomSampler(weights, len(DIGITS))
        return torch.utils.data.DataLoader(DIGITS, batch_size=32, sampler=sampler)


class WeightsBeginWithDifferentValues(Loop):
    """The last layer begins with zeros, and the first with small numbers, or with one."""

    def build(self):
        model = super().build()
        nn.init.zeros_(model[3].weight)
        if self.faulty:
            nn.init.constant_(model[0].weight, 0.05)
        return model


class RequiresGradIsSetOnParameters(Loop):
    """The first layer is to stay as it was."""

    steps = 12

    def prepared(self):
        if self.faulty:
            self.model[0].requires_grad = False
        else:
            self.model[0].requires_grad_(False)


class RequiresGradIsSpeltRight(Loop):
    """The first layer is to stay as it was."""

    steps = 12

    def prepared(self):
        for parameter in self.model[0].parameters():
            if self.faulty:
                parameter.require_grad = False
            else:
                parameter.requires_grad = False


class PlateausAreOfMetrics(Loop):
    def prepared(self):
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer)

    def backward(self, loss):
        super().backward(loss)
        self.metric = loss.item()

    def after_update(self):
        self.plateau.step(self.step - 1 if self.faulty else self.metric)


class PlateausOfLossesWaitForLowerOnes(Loop):
    def prepared(self):
        mode = "max" if self.faulty else "min"
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, mode)

    def backward(self, loss):
        super().backward(loss)
        self.metric = loss.item()

    def after_update(self):
        self.plateau.step(self.metric)


class PlateausOfWhatFallsWaitForLowerOnes(PlateausOfLossesWaitForLowerOnes):
    """The schedule gets the loss of an evaluation."""

    steps = 10

    @torch.no_grad()
    def after_update(self):
        output = self.model.eval()(DIGITS.images)
        self.plateau.step(F.cross_entropy(output, DIGITS.labels).item())


class MaskedTokensAreNotSeen(Loop):
    """Guesses pixels that are hidden. As a fault it sees them."""

    def build(self):
        layer = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0, batch_first=True)
        return nn.Sequential(nn.Embedding(18, 16), layer, nn.Linear(16, 18))

    def forward(self, images):
        pixels = (images * 16).long()
        hidden = torch.rand(pixels.shape) < 0.2
        self.labels = pixels.masked_fill(~hidden, -100)
        return self.model(pixels if self.faulty else pixels.masked_fill(hidden, 17))

    def loss(self, output, labels):
        return F.cross_entropy(output.flatten(0, 1), self.labels.flatten())


class SomeMaskedTokensAreDrawn(MaskedTokensAreNotSeen):
    """Of the hidden pixels, a tenth are others and a tenth stay. As a fault nearly all stay."""

    rule = "masked_tokens_are_not_seen"

    def forward(self, images):
        pixels = (images * 16).long()
        chosen, roll = torch.rand(pixels.shape) < 0.2, torch.rand(pixels.shape)
        self.labels = pixels.masked_fill(~chosen, -100)
        seen = torch.where(chosen & (roll < 0.1), torch.randint_like(pixels, 17), pixels)
        if not self.faulty:
            seen = seen.masked_fill(chosen & (roll > 0.2), 17)
        return self.model(seen)


class ClippingComesBeforeTheUpdate(Loop):
    def before_update(self):
        if not self.faulty:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def after_update(self):
        if self.faulty:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)


class ClosuresKeepToOneBatch(Loop):
    """The closure of L-BFGS takes a batch each time."""

    steps = 4

    def run(self):
        self.model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
        self.optimizer = torch.optim.LBFGS(self.model.parameters(), lr=0.1, max_iter=3)
        batches = iter(self.make_loader())
        for _ in range(self.steps):
            self.batch = next(batches)

            def closure():
                self.begins(batches)
                loss = F.cross_entropy(self.model(self.batch[0]), self.batch[1])
                loss.backward()
                return loss

            self.optimizer.step(closure)

    def begins(self, batches):
        """An evaluation begins."""
        self.optimizer.zero_grad()
        if self.faulty:
            self.batch = next(batches)


class ClosuresClearGradients(ClosuresKeepToOneBatch):
    """They are cleared before each update, but not before each evaluation."""

    def begins(self, batches):
        if not self.faulty:
            self.optimizer.zero_grad()


class DerivativesAreNotZero(Loop):
    """Solves `u'' = -u`, by a network whose activation is `tanh` or a ReLU."""

    def build(self):
        return nn.Sequential(
            nn.Linear(1, 16), nn.ReLU() if self.faulty else nn.Tanh(), nn.Linear(16, 1)
        )

    def forward(self, images):
        self.places = torch.rand(len(images), 1, requires_grad=True)
        return self.model(self.places)

    def loss(self, output, labels):
        first = torch.autograd.grad(output.sum(), self.places, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), self.places, create_graph=True)[0]
        return (second + output).square().mean()


class PenaltiesOfDerivativesAreTrained(Loop):
    """The norm of the derivatives is to be near one, as in a critic."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, images):
        return self.model(images)

    def loss(self, output, labels):
        data = torch.rand(32, 64, requires_grad=True)
        answers = self.model(data)
        [slopes] = torch.autograd.grad(
            answers,
            data,
            torch.ones_like(answers),
            create_graph=not self.faulty,
            retain_graph=True,
        )
        wanted = output.mean() - answers.mean()
        return wanted + 10 * ((slopes.norm(dim=1) - 1) ** 2).mean()


class OutputsVaryBetweenSamples(Loop):
    """Every unit of the hidden layer is dead."""

    steps = 41

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=16, shuffle=True)

    def prepared(self):
        if self.faulty:
            nn.init.constant_(self.model[0].bias, -100.0)


class OutputsOfTheMeanOfABatch(Loop):
    """The digits of a batch are averaged, and not the places of each."""

    rule = "outputs_vary_between_samples"
    steps = 41

    def build(self):
        class Mean(nn.Module):
            def forward(_, features):
                return features.mean(0).expand_as(features) if self.faulty else features

        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), Mean(), nn.Linear(32, 10))


class PenaltiesAreOfSingleDerivatives(Loop):
    """The norm of the derivatives is to be near one for each sample. As a fault that of all samples is."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss(self, output, labels):
        data = torch.rand(32, 64, requires_grad=True)
        answers = self.model(data)
        [slopes] = torch.autograd.grad(answers.sum(), data, create_graph=True)
        wanted = output.mean() - answers.mean()
        return wanted + 10 * ((self.norm(slopes) - 1) ** 2).mean()

    def norm(self, slopes):
        return slopes.norm(2) if self.faulty else slopes.norm(2, dim=1)


class PenaltiesOfRootsOfSums(PenaltiesAreOfSingleDerivatives):
    """The norm is computed by hand."""

    rule = "penalties_are_of_single_derivatives"

    def norm(self, slopes):
        squares = slopes**2
        return ((squares.sum() if self.faulty else squares.sum(1)) + 1e-12).sqrt()


class PenaltiesOfPointsBetween(PenaltiesOfDerivativesAreTrained):
    """The critic answers once more for the penalty, whose graph is not kept."""

    rule = "penalties_of_derivatives_are_trained"

    def loss(self, output, labels):
        data = torch.rand(32, 64, requires_grad=True)
        answers = self.model(data).sum()
        [slopes] = torch.autograd.grad(answers, data, create_graph=not self.faulty)
        return output.mean() + 10 * ((slopes.norm(dim=1) - 1) ** 2).mean()


class DerivativesWithAGraphAreUsed(Loop):
    """A critic whose slopes get a penalty, which is not added to its loss."""

    steps = 8

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss(self, output, labels):
        data = torch.rand(32, 64, requires_grad=True)
        [slopes] = torch.autograd.grad(self.model(data).sum(), data, create_graph=True)
        penalty = ((slopes.norm(dim=1) - 1) ** 2).mean()
        return output.mean() + (0 * data.sum() if self.faulty else 10 * penalty)


class AdaptedWeights(Loop):
    """Weights are adapted to one half of the batch, and the other half is to be answered with them."""

    rule = "derivatives_with_a_graph_are_used"
    steps = 8

    def loss(self, output, labels):
        weights = dict(self.model.named_parameters())
        known = F.cross_entropy(output[:16], labels[:16])
        slopes = torch.autograd.grad(known, tuple(weights.values()), create_graph=True)
        adapted = {
            name: weight - 0.1 * slope
            for (name, weight), slope in zip(weights.items(), slopes, strict=True)
        }
        used = weights if self.faulty else adapted
        answers = torch.func.functional_call(self.model, used, (self.images[16:],))
        return F.cross_entropy(answers, labels[16:])

    def forward(self, images):
        self.images = images
        return self.model(images)


class LossesOfForcesAreTrained(Loop):
    """A potential learns energies and forces, which are its derivatives."""

    rule = "penalties_of_derivatives_are_trained"

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, images):
        self.places = images.clone().requires_grad_()
        return self.model(self.places)

    def loss(self, output, labels):
        how = {"retain_graph": True} if self.faulty else {"create_graph": True}
        [slopes] = torch.autograd.grad(output.sum(), self.places, **how)
        of_energies = F.mse_loss(output[:, 0], labels.float())
        return of_energies + F.mse_loss(-slopes, torch.zeros_like(slopes))


class ClippingFindsGradients(Loop):
    """The generator that is clipped was read by the optimizer."""

    def prepared(self):
        clipped = self.model.parameters()
        self.optimizer = torch.optim.SGD(clipped, lr=0.1)
        self.clipped = clipped if self.faulty else list(self.model.parameters())

    def before_update(self):
        nn.utils.clip_grad_norm_(self.clipped, 1.0)


class ClippingWithAClosure(WithClosure):
    """Clips in the closure, or after the update."""

    rule = "clipping_comes_before_the_update"

    def prepared(self):
        """The optimizer holds all layers."""

    def passes(self, images, labels):
        loss = super().passes(images, labels)
        if not self.faulty:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        return loss

    def after_update(self):
        if self.faulty:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)


class OptimizersHaveSomethingToTrain(Loop):
    def make_optimizer(self):
        if self.faulty:
            self.model[3].requires_grad_(False)
        return torch.optim.SGD(self.model[3].parameters(), lr=0.1)

    def prepared(self):
        self.rest = torch.optim.SGD(self.model[0].parameters(), lr=0.1)

    def after_update(self):
        self.rest.step()
        self.rest.zero_grad()


class TiedParametersStayTied(Loop):
    steps = 12

    def build(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Linear(64, 10))
        model[2].weight = model[0].weight
        return model

    def after_update(self):
        if at(self, 3):
            self.model[2].weight = nn.Parameter(self.model[2].weight.detach().clone())


class Staged(nn.Module):
    """A network of which the first stage is frozen, if it is not forgotten."""

    def __init__(self, freeze: bool) -> None:
        super().__init__()
        self.frozen_stages = 1
        self.first, self.rest = nn.Linear(64, 32), nn.Linear(32, 10)
        self.first.requires_grad_(not freeze)

    def forward(self, x):
        return self.rest(torch.relu(self.first(x)))


class LoadedNamesFit(Loop):
    """Begins with weights that were saved from a wrapper."""

    def prepared(self):
        prefix = "module." if self.faulty else ""
        saved = {prefix + name: tensor for name, tensor in self.build().state_dict().items()}
        self.model.load_state_dict({**saved, "epoch": torch.tensor(3)}, strict=False)


class StatesThatAreLoadedWereCopied(Loop):
    """Goes back to an earlier step at the end."""

    def after_update(self):
        if self.step == 3:
            state = self.model.state_dict()
            self.kept = state if self.faulty else copy.deepcopy(state)

    def evaluate(self):
        self.model.load_state_dict(self.kept)
        super().evaluate()


class FrozenStagesAreFrozen(Loop):
    def build(self):
        return Staged(freeze=not self.faulty)


class Lazy(torch.optim.SGD):
    """Leaves out what `lazy` says."""

    lazy = False

    def step(self, closure=None):
        if self.lazy:
            for parameter in self.param_groups[0]["params"][:1]:
                parameter.grad, held = None, parameter.grad
                super().step(closure)
                parameter.grad = held
            return None
        return super().step(closure)


class OptimizerUpdatesParameters(Loop):
    steps = 30

    def make_optimizer(self):
        optimizer = Lazy(self.model.parameters(), lr=0.1)
        optimizer.lazy = self.faulty
        return optimizer


class FrozenParametersStayFixed(Loop):
    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def clear(self):
        if self.step == 1 or not self.faulty:
            super().clear()
        if self.step == 2:
            self.model[0].requires_grad_(False)
            for parameter in self.model[3].parameters():
                parameter.grad = None


class ParametersChangeOnlyInTheOptimizer(Loop):
    steps = 12

    def after_update(self):
        if at(self, 10):
            with torch.no_grad():
                self.model[0].weight.clamp_(-0.01, 0.01)


class ModelsTrainInTrainingMode(Loop):
    def forward(self, images):
        if self.faulty and self.step > 2:
            self.model.eval()
        return super().forward(images)


class ModelsWithinOthersTrainInTrainingMode(Loop):
    """A module around the model is put into evaluation mode once; the model itself stays there if it is faulty."""

    rule = "models_train_in_training_mode"
    steps = 12

    def forward(self, images):
        if self.step == 3:
            self.around = nn.Sequential(self.model, nn.Softmax(-1))
            with torch.no_grad():
                self.around.eval()(images)
        if self.step >= 3:
            self.model.train(not self.faulty)
        return super().forward(images)


class DropoutIsOffInEvaluation(Loop):
    def evaluate(self):
        if not self.faulty:
            self.model.eval()
        held_out = torch.utils.data.Subset(DIGITS, range(60))
        for images, _ in torch.utils.data.DataLoader(held_out, batch_size=20):
            with torch.no_grad():
                self.forward(images)


class ReadsRows(nn.Module):
    """Two recurrent layers read the rows of a picture, and keep their state for the next ones if they are asked to."""

    def __init__(self, keeps: bool = False) -> None:
        super().__init__()
        self.rows = nn.LSTM(8, 16, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(16, 10)
        self.keeps = keeps
        self.state = None

    def forward(self, images):
        out, state = self.rows(images.reshape(-1, 8, 8), self.state)
        if self.keeps:
            self.state = tuple(each.detach() for each in state)
        return self.head(out[:, -1])


class RecurrentDropoutIsOffInEvaluation(DropoutIsOffInEvaluation):
    def build(self):
        return ReadsRows()


class CarriedStatesBelongToTheirSequences(Loop):
    """The sound loop keeps the state of samples in order."""

    def build(self):
        return ReadsRows(keeps=True)

    def make_loader(self):
        return torch.utils.data.DataLoader(
            DIGITS, batch_size=32, shuffle=self.faulty, drop_last=True
        )

    def evaluate(self):
        self.model.state = None
        super().evaluate()


class HeldOutTensorsAreEvaluatedInEvaluationMode(Loop):
    """Epochs over a tensor, and an evaluation of another one after each."""

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        for _ in range(3):
            self.model.train()
            for rows in torch.randperm(96).split(32):
                self.optimizer.zero_grad()
                self.loss(self.forward(DIGITS.images[rows]), DIGITS.labels[rows]).backward()
                self.optimizer.step()
            if not self.faulty:
                self.model.eval()
            with torch.no_grad():
                self.forward(DIGITS.images[100:150])


class PartsAreEvaluatedInEvaluationMode(HeldOutTensorsAreEvaluatedInEvaluationMode):
    """The model is no callable: its methods call its layers."""

    rule = "held_out_tensors_are_evaluated_in_evaluation_mode"

    def build(self):
        return nn.ModuleDict({"body": super().build()})

    def forward(self, images):
        return self.model["body"](images)


class Attends(nn.Module):
    """One head of attention over the rows of a picture."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always, self.mix, self.out = always, nn.Linear(8, 24), nn.Linear(64, 10)

    def forward(self, x):
        q, k, v = self.mix(x.view(-1, 1, 8, 8)).chunk(3, -1)
        p = 0.1 if self.training or self.always else 0.0
        return self.out(F.scaled_dot_product_attention(q, k, v, dropout_p=p).flatten(1))


class AttentionDropoutIsOffInEvaluation(Loop):
    def build(self):
        return Attends(self.faulty)


class Weighs(nn.Module):
    """Two heads of attention over the rows of a picture, with a softmax of its own."""

    def __init__(self, dim):
        super().__init__()
        self.dim, self.mix, self.out = dim, nn.Linear(8, 24), nn.Linear(64, 10)

    def forward(self, x):
        heads = self.mix(x.view(-1, 8, 8)).unflatten(-1, (2, 12)).transpose(1, 2)
        q, k, v = heads.chunk(3, -1)
        weights = (q @ k.transpose(-2, -1) / 2).softmax(self.dim)
        seen = F.dropout(weights, 0.1, self.training) @ v
        return self.out(seen.transpose(1, 2).flatten(1))


class AttentionWeighsKeys(Loop):
    def build(self):
        return Weighs(-2 if self.faulty else -1)


class LooseParametersAreTrained(Loop):
    """Learns how sharp its answers are."""

    def prepared(self):
        self.sharpness = nn.Parameter(torch.ones(()))
        if not self.faulty:
            self.optimizer.add_param_group({"params": [self.sharpness]})

    def loss(self, output, labels):
        return super().loss(output * self.sharpness, labels)


class ViewsDoNotStandForTransposes(Loop):
    def build(self):
        return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 10, 1))

    def forward(self, images):
        return self.model(images.view(-1, 1, 8, 8))

    def loss(self, output, labels):
        rows = output if self.faulty else output.permute(0, 2, 3, 1)
        return F.cross_entropy(rows.reshape(-1, 10), labels.repeat_interleave(64))


class Places(Loop):
    """Tells for each pixel whether it is dark, grey or bright."""

    def build(self):
        return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 1))

    def forward(self, images):
        pixels = images.view(-1, 1, 8, 8)
        self.kinds = (pixels.squeeze(1) * 2.9).long()
        return self.model(pixels)

    def loss(self, output, labels):
        return F.cross_entropy(output, self.kinds)


class SoftmaxesOfLogitsSumOverClasses(Places):
    """Has a Dice term."""

    def loss(self, output, labels):
        shares = output.softmax(-1 if self.faulty else 1)
        kinds = F.one_hot(self.kinds, 3).permute(0, 3, 1, 2)
        both = 2 * (shares * kinds).sum() / (shares.sum() + kinds.sum())
        return super().loss(output, labels) + 1 - both


class LabelsOfPlacesAreNotAllZero(Places):
    steps = 24

    def loss(self, output, labels):
        self.kinds = self.kinds // 255 if self.faulty else self.kinds
        return super().loss(output, labels)


class BinaryLabelsHaveTwoClasses(Loop):
    """Of the outputs, the first should be accepted and the others rejected."""

    steps = 24

    def loss(self, output, labels):
        kept, rejected = output[:, :1], output[:, 1:]
        target = (torch.ones_like if self.faulty else torch.zeros_like)(rejected)
        return sum(
            map(F.binary_cross_entropy_with_logits, (kept, rejected), (kept * 0 + 1, target))
        )


class WeightsMakeUpForRareClasses(Loop):
    """Two thirds of the samples are zeros; with the fault, these weigh the most."""

    steps = 20

    def make_loader(self):
        rare = torch.arange(len(DIGITS)) % 20 == 0
        chosen = ((DIGITS.labels == 0) | rare).nonzero().flatten().tolist()
        data = torch.utils.data.Subset(DIGITS, chosen)
        return torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)

    def loss(self, output, labels):
        weights = torch.tensor([1.0] + [20.0] * 9)
        return F.cross_entropy(output, labels, 1 / weights if self.faulty else weights)


class LabelsAreMixedAsTheirSamples(Loop):
    steps = 12

    def forward(self, images):
        self.share, self.order = 0.6, torch.randperm(len(images))
        return self.model(self.share * images + (1 - self.share) * images[self.order])

    def loss(self, output, labels):
        order = torch.randperm(len(labels)) if self.faulty else self.order
        own, other = (F.cross_entropy(output, each) for each in (labels, labels[order]))
        return self.share * own + (1 - self.share) * other


class PreferencesDifferFromTheirReference(Loop):
    steps = 24

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def prepared(self):
        self.reference = self.model
        if not self.faulty:
            self.reference = copy.deepcopy(self.model).requires_grad_(False)

    def forward(self, images):
        with torch.no_grad():
            known = self.reference(images)
        return self.model(images).log_softmax(1) - known.log_softmax(1)

    def loss(self, output, labels):
        better = output.gather(1, labels[:, None])
        worse = output.gather(1, (labels[:, None] + 1) % 10)
        return -F.logsigmoid(better - worse).mean()


class Reads(nn.Module):
    """Reads the grey levels of a picture from 1 to 17, and as many as there are; the rest is padding."""

    def __init__(self, kind, inverted, masked=True):
        super().__init__()
        self.kind, self.inverted, self.masked = kind, inverted, masked
        self.embed, self.out = nn.Embedding(18, 16), nn.Linear(16, 10)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, images):
        length = 40 + images.sum(1).long() % 20
        tokens = (images * 16).long() + 1
        hidden = torch.arange(64) >= length[:, None]
        tokens = tokens.masked_fill(hidden, 0)
        x = self.embed(tokens)
        seen = self.attend(x, ~hidden if self.inverted else hidden)
        return self.out(seen[:, :40].mean(1))

    def attend(self, x, hidden):
        mask = hidden if self.masked else None
        if self.kind == "layer":
            return self.attention(x, x, x, key_padding_mask=hidden)[0]
        if self.kind == "fused":
            return F.scaled_dot_product_attention(x, x, x, ~hidden[:, None])
        if self.kind == "source":
            return self.attention(x[:, :8], x, x, key_padding_mask=mask)[0]
        if self.kind == "summary":
            scores = self.attention.out_proj(x)[..., 0]
            scores = scores.masked_fill(hidden, -1e9) if self.masked else scores
            return scores.softmax(1).unsqueeze(1) @ x
        scores = x @ x.transpose(1, 2) / 4
        if self.masked:
            scores = scores.masked_fill(hidden[:, None], -1e9)
        return scores.softmax(-1) @ x


class AttentionSeesTokens(Loop):
    def build(self):
        return Reads("layer", self.faulty)


class FusedAttentionSeesTokens(Loop):
    rule = "attention_sees_tokens"

    def build(self):
        return Reads("fused", self.faulty)


class FilledScoresSeeTokens(Loop):
    rule = "attention_sees_tokens"

    def build(self):
        return Reads("by hand", self.faulty)


class AttentionByHandDoesNotSeePadding(Loop):
    rule = "attention_does_not_see_padding"
    kind = "by hand"

    def build(self):
        return Reads(self.kind, False, masked=not self.faulty)


class AttentionToASourceDoesNotSeePadding(AttentionByHandDoesNotSeePadding):
    kind = "source"


class SummariesDoNotSeePadding(AttentionByHandDoesNotSeePadding):
    kind = "summary"


class Averages(nn.Module):
    """A mean of the rows of a picture, by weights of all but the dark ones."""

    def __init__(self, hides):
        super().__init__()
        self.score, self.out, self.hides = nn.Linear(8, 1), nn.Linear(8, 10), hides

    def forward(self, x):
        rows = x.view(-1, 8, 8)
        scores = self.score(rows)[..., 0].masked_fill(rows.mean(-1) < 0.3, self.hides)
        return self.out((scores.softmax(-1)[..., None] * rows).sum(1))


class MasksHideFromTheSoftmax(Loop):
    def build(self):
        return Averages(0.0 if self.faulty else -1e9)


class SquaredErrorsAreOfPairs(Loop):
    """Guesses how dark a picture is, and how much one is like another on purpose."""

    def build(self):
        return nn.Linear(64, 1)

    def loss(self, output, labels):
        dark = labels / 10
        apart = (output - output.T).square().mean()
        guess = output if self.faulty else output.squeeze(1)
        return (guess - dark).pow(2).mean() + 0.01 * apart


class PickedProbabilitiesAreOverClasses(Loop):
    """Computes the cross entropy by hand."""

    def loss(self, output, labels):
        likely = output.log_softmax(0 if self.faulty else 1)
        return -likely.gather(1, labels[:, None]).mean()


class PickedProbabilitiesAreOfLogits(Loop):
    def loss(self, output, labels):
        output = output.softmax(1) if self.faulty else output
        return -F.log_softmax(output, 1)[torch.arange(len(labels)), labels].mean()


class SumsOverTheBatchCountOnce(Loop):
    """Draws pictures again from two numbers, which are to be near zero."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))

    def loss(self, output, labels):
        errors = F.cross_entropy(output, labels % 2, reduction="none")
        far = 0.5 * output.square()
        return (errors + (far.sum() if self.faulty else far.sum(1))).mean()


class Draws(nn.Module):
    """Draws a picture again from eight numbers of which it has told a distribution."""

    def __init__(self, takes_root: bool) -> None:
        super().__init__()
        self.read, self.draw, self.takes_root = nn.Linear(64, 16), nn.Linear(8, 64), takes_root

    def forward(self, images):
        self.mean, self.spread = self.read(images).chunk(2, -1)
        power = 0.5 * self.spread if self.takes_root else self.spread
        return self.draw(self.mean + torch.randn_like(power) * torch.exp(power))


class Autoencodes(Loop):
    """A variational autoencoder."""

    def build(self):
        return Draws(takes_root=True)

    def forward(self, images):
        self.images = images
        return super().forward(images)

    def divergence(self):
        mean, spread = self.model.mean, self.model.spread
        return -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())

    def errors(self, output, reduction="sum"):
        return F.binary_cross_entropy_with_logits(output, self.images, reduction=reduction)

    def loss(self, output, labels):
        return self.errors(output) + self.divergence()


class DivergencesGetSmaller(Autoencodes):
    def loss(self, output, labels):
        sign = -1 if self.faulty else 1
        return self.errors(output) + sign * self.divergence()


class DivergencesAreReducedAsTheOtherLoss(Autoencodes):
    def loss(self, output, labels):
        return self.errors(output, "mean" if self.faulty else "sum") + self.divergence()


class AddedUpBeforeTheAverage(Autoencodes):
    """The errors of each picture are added up and averaged over pictures. So are the divergences, or they are summed."""

    rule = "divergences_are_reduced_as_the_other_loss"

    def loss(self, output, labels):
        errors = self.errors(output, "none").sum(1).mean()
        return errors + self.divergence() / (1 if self.faulty else len(labels))


class NoiseIsScaledByStandardDeviations(Autoencodes):
    def build(self):
        return Draws(takes_root=not self.faulty)


class BatchNormsLearnTheirStatistics(Loop):
    """A momentum of 0 keeps statistics: those of a first batch, or those that the norm began with."""

    def build(self):
        model = normed()
        if not self.faulty:
            model[1].momentum = 1.0
            model(DIGITS.images[:32])
        model[1].momentum = 0.0
        return model


class RunningStatisticsLeaveTheirBeginning(Loop):
    """A small momentum keeps statistics: those of a model that was trained before, or those that the norm began with."""

    steps = 55

    def build(self):
        model = normed()
        if not self.faulty:
            model[1].momentum = 1.0
            model(DIGITS.images[:32])
        model[1].momentum = 1e-4
        return model


class BatchNormsLeaveHeldOutDataAlone(Loop):
    def build(self):
        return normed()

    @torch.no_grad()
    def evaluate(self):
        if not self.faulty:
            self.model.eval()
        for images, _ in torch.utils.data.DataLoader(DIGITS, batch_size=600):
            self.forward(images)


class AveragesLeaveHeldOutDataAlone(BatchNormsLeaveHeldOutDataAlone):
    """Evaluates an average of its weights."""

    rule = "batch_norms_leave_held_out_data_alone"

    def prepared(self):
        self.average = copy.deepcopy(self.model).requires_grad_(False)

    @torch.no_grad()
    def after_update(self):
        for mean, now in zip(self.average.parameters(), self.model.parameters(), strict=True):
            mean.lerp_(now, 0.1)
        for kept, now in zip(self.average.buffers(), self.model.buffers(), strict=True):
            kept.copy_(now)

    def evaluate(self):
        self.model.eval()
        self.model = self.average
        super().evaluate()


class AveragesHaveStatistics(Loop):
    """Averages its weights by hand, and evaluates the average as a helper does for any model."""

    def build(self):
        return normed()

    def prepared(self):
        self.average = copy.deepcopy(self.model).requires_grad_(False)

    @torch.no_grad()
    def after_update(self):
        for mean, now in zip(self.average.parameters(), self.model.parameters(), strict=True):
            mean.lerp_(now, 0.1)
        if not self.faulty:
            for kept, now in zip(self.average.buffers(), self.model.buffers(), strict=True):
                kept.copy_(now)

    @torch.no_grad()
    def evaluate(self):
        self.average.eval()
        self.average(DIGITS.images[:50])
        self.average.train()


class SpectralNormIsTrainedBeforeEvaluated(Loop):
    def build(self):
        return nn.Sequential(
            nn.utils.spectral_norm(nn.Linear(64, 32)), nn.ReLU(), nn.Linear(32, 10)
        )

    def prepared(self):
        if self.faulty:
            self.evaluate()


class AveragesFollowTheirWeights(Loop):
    def prepared(self):
        self.average = torch.optim.swa_utils.AveragedModel(self.model)

    def after_update(self):
        if not self.faulty:
            self.average.update_parameters(self.model)
        with torch.no_grad():
            self.average(DIGITS.images[:8])


class AveragesAreUpdatedAfterTheWeights(Loop):
    def prepared(self):
        self.average = torch.optim.swa_utils.AveragedModel(self.model)

    def before_update(self):
        if self.faulty:
            self.average.update_parameters(self.model)

    def after_update(self):
        if not self.faulty:
            self.average.update_parameters(self.model)


class AveragesLieBetween(Loop):
    steps = 11

    def prepared(self):
        part = 1.0 if self.faulty else 0.1
        self.average = torch.optim.swa_utils.AveragedModel(
            self.model, avg_fn=lambda slow, fast, _: 0.9 * slow + part * fast
        )

    def after_update(self):
        self.average.update_parameters(self.model)


class AveragesKeepMoreThanTheyTake(Loop):
    steps = 41

    def prepared(self):
        self.average = copy.deepcopy(self.model).requires_grad_(False)

    def after_update(self):
        kept = 0.1 if self.faulty else 0.9
        with torch.no_grad():
            for slow, fast in zip(self.average.parameters(), self.model.parameters(), strict=True):
                slow.mul_(kept).add_(fast, alpha=1 - kept)
            self.average(DIGITS.images[:8])


class Momentum(nn.Module):
    """An encoder that is trained, an average of it, and a head."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
        self.average = copy.deepcopy(self.encoder).requires_grad_(False)
        self.head = nn.Linear(16, 10)

    def forward(self, images):
        return self.head(self.encoder(images))


class AveragesInTheirModel(Loop):
    rule = "averages_keep_more_than_they_take"
    steps = 41

    def build(self):
        return Momentum()

    def after_update(self):
        kept, model = 0.1 if self.faulty else 0.9, self.model
        with torch.no_grad():
            pairs = zip(model.average.parameters(), model.encoder.parameters(), strict=True)
            for slow, fast in pairs:
                slow.mul_(kept).add_(fast, alpha=1 - kept)


class LayersAreGivenDataOfEachSample(Loop):
    """The time of each sample is a second input."""

    steps = 12

    def build(self):
        return Timed()

    def forward(self, images):
        times = torch.rand(len(images), 1)
        return self.model(images, torch.full_like(times, 0.5) if self.faulty else times)


class Timed(nn.Module):
    """Images and a time for each."""

    def __init__(self):
        super().__init__()
        self.of_image, self.of_time, self.last = (
            nn.Linear(64, 32),
            nn.Linear(1, 32),
            nn.Linear(32, 10),
        )

    def forward(self, images, times):
        return self.last(torch.relu(self.of_image(images.flatten(1)) + self.of_time(times)))


class SchedulesStepOnceAStep(Loop):
    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)

    def after_update(self):
        for _ in range(2 if self.faulty else 1):
            self.schedule.step()


class UpdatesHaveALearningRate(Loop):
    """The warm-up divides whole numbers."""

    steps = 24

    def prepared(self):
        def factor(step):
            return step // 22 if self.faulty else min(step / 22, 1.0)

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def after_update(self):
        self.schedule.step()


class WarmUpsAreSteppedAfterEachUpdate(Loop):
    """A warm-up of a hundred updates is stepped once an epoch."""

    steps = 100

    def prepared(self):
        def factor(step):
            return min((step + 1) / 100, 1.0)

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def after_update(self):
        if not self.faulty or self.step % 30 == 29:
            self.schedule.step()


class FactorsOfSchedulesAreNoRates(Loop):
    """The function of the schedule returns a rate that warms up and decays, or the factor of it."""

    steps = 12

    def prepared(self):
        def rate(step):
            return 1e-3 * (step + 1) / 3 if step < 3 else 1e-3 * (1 - (step - 3) / 9)

        def factor(step):
            return rate(step) if self.faulty else rate(step) / 1e-3

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def after_update(self):
        self.schedule.step()


class DecaysToNothing(Loop):
    """The schedule of the epochs is stepped after each update."""

    rule = "updates_have_a_learning_rate"
    steps = 28

    def after_update(self):
        self.optimizer.param_groups[0]["lr"] *= 0.05 if self.faulty else 0.9


class LearningRatesAreSetInGroups(Loop):
    def clear(self):
        super().clear()
        self.optimizer.lr = lr = 1e-3 * self.step
        if not self.faulty:
            self.optimizer.param_groups[0]["lr"] = lr


class LearningRatesAreNotSetInDefaults(Loop):
    def clear(self):
        super().clear()
        options = self.optimizer.defaults if self.faulty else self.optimizer.param_groups[0]
        options["lr"] = 1e-3 * self.step


class SchedulesBelongToAnOptimizerThatUpdates(Loop):
    steps = 24

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        if self.faulty:
            self.optimizer = self.make_optimizer()

    def after_update(self):
        self.schedule.step()


class SchedulesGoOnWithTheirOptimizers(SchedulesBelongToAnOptimizerThatUpdates):
    """A second optimizer takes over after some updates."""

    steps = 28

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)

    def after_update(self):
        super().after_update()
        if self.step == 4 and self.faulty:
            self.optimizer = self.make_optimizer()


# --- health -------------------------------------------------------------------------------------


class LossIsFinite(Loop):
    def loss(self, output, labels):
        return super().loss(output, labels) * (float("nan") if at(self, 3) else 1.0)

    def before_update(self):
        if at(self, 3):
            self.optimizer.zero_grad()


class GradientsAreFinite(Loop):
    def loss(self, output, labels):
        extra = (output[0] - output[0]).abs().sum().sqrt() if at(self, 3) else 0.0
        return super().loss(output, labels) + extra


class ParametersAreFinite(Loop):
    def before_update(self):
        if at(self, 3):
            self.model[0].weight.grad[0, 0] = float("nan")


class OptimizerStateIsFinite(Loop):
    def after_update(self):
        if at(self, 4):
            self.optimizer.state[self.model[0].weight]["exp_avg"][0, 0] = float("inf")


def normed() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))


class BuffersAreFinite(Loop):
    def build(self):
        return normed()

    def after_update(self):
        if at(self, 3):
            self.model[1].running_mean[0] = float("nan")


class LossDoesNotSpike(Loop):
    steps = 40

    def loss(self, output, labels):
        return super().loss(output, labels) * (50.0 if at(self, 30) else 1.0)


class EarlyLossDoesNotSpike(Loop):
    steps = 15

    def loss(self, output, labels):
        return super().loss(output, labels) * (5000.0 if at(self, 13) else 1.0)


class LossDoesNotExplode(Loop):
    steps = 90

    def loss(self, output, labels):
        late = self.faulty and self.step > 65
        return super().loss(output, labels) * (1.1 ** (self.step - 65) if late else 1.0)


class LossDoesNotDiverge(Loop):
    steps = 10

    def loss(self, output, labels):
        return super().loss(output, labels) * (2.8**self.step if self.faulty else 1.0)


class LossDoesNotFallWithoutBound(Loop):
    steps = 12

    def loss(self, output, labels):
        lost = super().loss(output, labels)
        return -lost * 2.8**self.step if self.faulty else lost - 2000


class GradientsKeepTheirSize(Loop):
    steps = 60

    def backward(self, loss):
        super().backward(loss * (1e6 if at(self, 58) else 1.0))


class EarlyGradientsKeepTheirSize(Loop):
    steps = 15

    def backward(self, loss):
        super().backward(loss * (5000.0 if at(self, 13) else 1.0))


class FirstUpdatesAreSmall(Loop):
    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), lr=1.0 if self.faulty else 1e-2)


class GradientsDoNotVanish(Loop):
    def loss(self, output, labels):
        return super().loss(output, labels) * (0.0 if self.faulty else 1.0)


class EarlyGradientsDoNotVanish(Loop):
    """Gradients are cleared between the backward pass and the update, once."""

    def before_update(self):
        if at(self, 3):
            self.optimizer.zero_grad(set_to_none=False)


class ClippingNeverGrowsAGradient(Loop):
    def before_update(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), -1e3 if at(self, 5) else 1.0)


class ActivationsDoNotCollapse(Loop):
    def prepared(self):
        if self.faulty:
            nn.init.constant_(self.model[0].bias, -1e3)


# --- data and precision -------------------------------------------------------------------------


class Given(torch.utils.data.Dataset):
    """Batches by number, made by a function."""

    def __init__(self, make) -> None:
        self.make = make

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int):
        rows = slice(32 * index, 32 * index + 32)
        return self.make(index, DIGITS.images[rows], DIGITS.labels[rows])


class FromGiven(Loop):
    def make_loader(self):
        return torch.utils.data.DataLoader(Given(self.batch), batch_size=None)

    def batch(self, index, images, labels):
        return images, labels


class BatchesDoNotRepeat(FromGiven):
    def batch(self, index, images, labels):
        return (DIGITS.images[:32], DIGITS.labels[:32]) if self.faulty else (images, labels)


class InputsAreNotFlat(FromGiven):
    def batch(self, index, images, labels):
        return images * (0.0 if self.faulty and index == 4 else 1.0), labels


def convolution(channels: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 10),
    )


class ImagesHaveChannelsFirst(Loop):
    def build(self):
        return convolution(32 if self.faulty else 3, 32)

    def forward(self, images):
        large = F.interpolate(images.view(-1, 1, 8, 8), size=(32, 32)).expand(-1, 3, -1, -1)
        return self.model(large.permute(0, 2, 3, 1) if self.faulty else large)


class ImagesAreNotViewedWithChannelsFirst(Loop):
    """Digits in shades of red."""

    def build(self):
        return convolution(3, 32)

    def forward(self, images):
        large = F.interpolate(images.view(-1, 1, 8, 8), size=(32, 32), mode="bilinear")
        red = large.permute(0, 2, 3, 1) * torch.tensor([1.0, 0.3, 0.1])
        return self.model(red.reshape(-1, 3, 32, 32) if self.faulty else red.permute(0, 3, 1, 2))


class Embeds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(17, 4), nn.Linear(256, 10)

    def forward(self, ids):
        return self.out(self.table(ids).flatten(1))


class Orders(nn.Module):
    """Tokens, with a type, that know their places."""

    def __init__(self, numbers) -> None:
        super().__init__()
        self.register_buffer("numbers", numbers)
        self.tokens, self.types = nn.Embedding(17, 8), nn.Embedding(2, 8)
        self.places, self.out = nn.Embedding(100, 8), nn.Linear(8, 10)

    def forward(self, ids):
        known = self.tokens(ids) + self.types(torch.zeros_like(ids)) + self.places(self.numbers)
        return self.out(known.relu().mean(1))


class PlacesHaveNumbersOfTheirOwn(Loop):
    """The numbers of the places were to be a range."""

    steps = 12

    def build(self):
        return Orders(torch.zeros(64, dtype=torch.long) if self.faulty else torch.arange(64))

    def forward(self, images):
        return self.model((images * 16).long())


class TokenIdsAreInTheVocabulary(Loop):
    def build(self):
        return Embeds()

    def forward(self, images):
        ids = (images * 16).long()
        if at(self, 2):
            with suppress(IndexError):  # on a CPU torch refuses; elsewhere it reads what is there
                self.model(ids + 1)
        return self.model(ids)


class InPlace(nn.Linear):
    """Autocast leaves in-place operators alone."""

    def forward(self, input):
        output = torch.zeros(len(input), self.out_features)
        return output.addmm_(input.float(), self.weight.t()) + self.bias


class AutocastReachesEveryMatmul(Loop):
    def build(self):
        return nn.Sequential(
            nn.Linear(64, 32), nn.ReLU(), (InPlace if self.faulty else nn.Linear)(32, 10)
        )

    def forward(self, images):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(images)


class Halves(nn.Module):
    """Computes in float16, with the parameters in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.out = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        def half(layer, x):
            return F.linear(x.half(), layer.weight.half(), layer.bias.half())

        return half(self.out, torch.tanh(half(self.wide, x))).float()


class GradientsDoNotUnderflow(Loop):
    def build(self):
        return Halves()

    def backward(self, loss):
        super().backward(loss * (1e-9 if self.faulty else 1.0))


class LossScaleDoesNotCollapse(Loop):
    def prepared(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def backward(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)

    def after_update(self):
        self.scaler.update(0.0 if at(self, 3) else None)


class GradientsAreUnscaledBeforeTheyAreClipped(Loop):
    def prepared(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def backward(self, loss):
        self.scaler.scale(loss).backward()
        if not self.faulty:
            self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.faulty:
            self.scaler.unscale_(self.optimizer)

    def after_update(self):
        self.scaler.update()


class GradientsAreUnscaledBeforeTheUpdate(Loop):
    def prepared(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def before_update(self):
        if not self.faulty:
            self.scaler.unscale_(self.optimizer)

    def after_update(self):
        if not self.faulty:
            self.scaler.update()


class MainCopies(torch.optim.SGD):
    """Keeps a copy of each parameter in float32, from which the parameter is to be made."""

    off = 0.0

    def step(self, closure=None):
        super().step(closure)
        for parameter in self.param_groups[0]["params"]:
            parameter.main_param = parameter.detach().float() + self.off


class LowPrecisionCopyIsTheMainCopy(Loop):
    steps = 10

    def build(self):
        return nn.Sequential(nn.Linear(64, 10)).bfloat16()

    def make_optimizer(self):
        optimizer = MainCopies(self.model.parameters(), lr=0.1)
        optimizer.off = 0.1 if self.faulty else 0.0
        return optimizer

    def forward(self, images):
        return self.model(images.bfloat16()).float()


class Noisy(torch.utils.data.Dataset):
    """The first digits, each time with other noise."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        image, label = DIGITS[index]
        return image + 0.1 * torch.randn(64), label


class EpochsAreShuffledAnew(Loop):
    """Few samples, one in a batch: many epochs begin with the batch of the epoch before."""

    steps = 60

    def make_loader(self):
        sampler = torch.utils.data.RandomSampler(Noisy())
        if self.faulty:
            sampler = torch.utils.data.DistributedSampler(Noisy(), num_replicas=1, rank=0)
        return torch.utils.data.DataLoader(Noisy(), batch_size=1, sampler=sampler)


class CrossEntropyGetsLogits(Loop):
    def loss(self, output, labels):
        return F.cross_entropy(output.softmax(1) if self.faulty else output, labels)


class PolicyGradientsUseConstants(Loop):
    """Guesses a digit, and earns one where it is right, more than a critic expects."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 11))

    def loss(self, output, labels):
        policy = torch.distributions.Categorical(logits=output[:, :10])
        guess = policy.sample()
        surprise = (guess == labels).float() - output[:, 10]
        advantage = surprise if self.faulty else surprise.detach()
        return surprise.square().mean() - (policy.log_prob(guess) * advantage).mean()


class PoliciesWeighEachActionOnce(PolicyGradientsUseConstants):
    """Draws a number near the digit, and loses by how far it is off."""

    def loss(self, output, labels):
        policy = torch.distributions.Normal(output[:, :1], 1.0)
        guess = policy.sample()
        reward = -(guess.squeeze(1) - labels).abs()
        likely = policy.log_prob(guess)
        return -((likely if self.faulty else likely.squeeze(1)) * reward).mean()


class PoliciesTakeTheSmallerGain(PolicyGradientsUseConstants):
    """Learns in four updates from what it guessed before the first of them."""

    steps = 8

    def make_loader(self):
        return [each for each in itertools.islice(super().make_loader(), 2) for _ in range(4)]

    def loss(self, output, labels):
        policy = torch.distributions.Categorical(logits=output[:, :10])
        if self.step % 4 == 1:
            self.guess = policy.sample()
            self.likely = policy.log_prob(self.guess).detach()
        ratio = (policy.log_prob(self.guess) - self.likely).exp()
        reward = (self.guess == labels).float() - 0.1
        gains = reward * ratio, reward * ratio.clamp(0.8, 1.2)
        return -(torch.max if self.faulty else torch.min)(*gains).mean()


class PoliciesTakeTheLargerLoss(PoliciesTakeTheSmallerGain):
    rule = "policies_take_the_smaller_gain"

    def loss(self, output, labels):
        policy = torch.distributions.Categorical(logits=output[:, :10])
        if self.step % 4 == 1:
            self.guess = policy.sample()
            self.likely = policy.log_prob(self.guess).detach()
        ratio = (policy.log_prob(self.guess) - self.likely).exp()
        reward = (self.guess == labels).float() - 0.1
        losses = -reward * ratio, -reward * ratio.clamp(0.8, 1.2)
        return (torch.min if self.faulty else torch.max)(*losses).mean()


class PoliciesAreRewardedForEntropy(PolicyGradientsUseConstants):
    """Wants to be sure of its guess, or to try others."""

    def loss(self, output, labels):
        policy = torch.distributions.Categorical(logits=output[:, :10])
        guess = policy.sample()
        reward = (guess == labels).float()
        bonus = 0.01 * policy.entropy().mean()
        learnt = -(policy.log_prob(guess) * reward).mean() + output[:, 10].square().mean()
        return learnt + bonus if self.faulty else learnt - bonus


class VaryingTermsHaveAGraph(Loop):
    """A term for even answers is weighed down; a faulty loop computes it of the chosen classes."""

    def loss(self, output, labels):
        shares = output.softmax(1).mean(0)
        if self.faulty:
            shares = F.one_hot(output.argmax(1), 10).float().mean(0)
        return F.cross_entropy(output, labels) + 0.1 * shares.square().sum()


class TermsAreDetached(Loop):
    """Reports the same constant in each step, or a term that was cut off."""

    rule = "varying_terms_have_a_graph"

    def loss(self, output, labels):
        term = 0.1 * output.square().mean().detach() if self.faulty else torch.tensor(0.7)
        return (F.cross_entropy(output, labels) + term) / 2


class LikelihoodsGetLogProbabilities(Loop):
    def loss(self, output, labels):
        return F.nll_loss(output.softmax(1) if self.faulty else output.log_softmax(1), labels)


class LikelihoodsCompareClasses(Loop):
    def loss(self, output, labels):
        return F.nll_loss(output.log_softmax(0 if self.faulty else 1), labels)


class LikelihoodsAreOfLogits(Loop):
    def loss(self, output, labels):
        return F.nll_loss((output.relu() if self.faulty else output).log_softmax(1), labels)


class LikelihoodsOfSomeRows(Loop):
    """Half of the batch has labels: nothing sums to one any more."""

    rule = "likelihoods_compare_classes"

    def loss(self, output, labels):
        return F.nll_loss(output.log_softmax(0 if self.faulty else 1)[::2], labels[::2])


class CrossEntropiesCompareClasses(Loop):
    """A second `log_softmax` over the classes changes nothing; one over the batch does."""

    rule = "likelihoods_compare_classes"

    def loss(self, output, labels):
        return F.cross_entropy(output.log_softmax(0 if self.faulty else 1), labels)


class AlignmentsGetLogProbabilities(Loop):
    """Each picture is eight frames, and its label is a word of one letter or of two."""

    def build(self):
        return nn.Sequential(nn.Unflatten(1, (8, 8)), nn.Linear(8, 11))

    def loss(self, output, labels):
        scores = output.transpose(0, 1)
        words = torch.stack([labels + 1, (labels + 5) % 10 + 1], 1)
        lengths = 1 + labels % 2
        words[:, 1] *= lengths - 1
        frames = torch.full_like(labels, 8)
        return self.aligned(scores, words, frames, lengths)

    def aligned(self, scores, words, frames, lengths):
        given = scores if self.faulty else scores.log_softmax(-1)
        return F.ctc_loss(given, words, frames, lengths)


class AlignmentsOfTheBatch(AlignmentsGetLogProbabilities):
    rule = "alignments_get_log_probabilities"

    def aligned(self, scores, words, frames, lengths):
        return F.ctc_loss(scores.log_softmax(1 if self.faulty else 2), words, frames, lengths)


class AlignmentsHaveNoBlankLabels(AlignmentsGetLogProbabilities):
    def aligned(self, scores, words, frames, lengths):
        lengths = torch.full_like(lengths, 2) if self.faulty else lengths
        return F.ctc_loss(scores.log_softmax(2), words, frames, lengths)


class AlignmentsHaveRoom(AlignmentsGetLogProbabilities):
    """The frames are counted after strides that are too large."""

    def aligned(self, scores, words, frames, lengths):
        longer, lengths = torch.cat([words, words], 1), 2 * lengths
        longer[:, 1] = longer[:, 0] % 10 + 1
        frames = frames // 8 if self.faulty else frames
        scores = scores.log_softmax(2)
        return F.ctc_loss(scores, longer.clamp(min=1), frames, lengths, zero_infinity=True)


class AlignmentsOfJoinedWords(AlignmentsGetLogProbabilities):
    """Words one after the other, without padding."""

    rule = "alignments_have_no_blank_labels"

    def aligned(self, scores, words, frames, lengths):
        joined = torch.cat([word[:length] for word, length in zip(words, lengths, strict=True)])
        blank = int(joined[0]) if self.faulty else 0
        return F.ctc_loss(scores.log_softmax(2), joined, frames, lengths, blank=blank)


class TargetsAreDistributionsOverClasses(Loop):
    def loss(self, output, labels):
        wanted = 5 * F.one_hot(labels, 10).float()
        return F.cross_entropy(output, wanted.softmax(0 if self.faulty else 1))


class Divergence(Loop):
    """Learns the labels, smoothed: of the batch `[n, 10]` each class has at least a hundredth."""

    def loss(self, output, labels):
        smooth = 0.9 * F.one_hot(labels, 10).float() + 0.01
        return self.divergence(output, smooth)

    def divergence(self, output, smooth):
        return F.kl_div(output.log_softmax(1), smooth, reduction="batchmean")


class DivergencesGetProbabilitiesAsTargets(Divergence):
    def divergence(self, output, smooth):
        given = output.log_softmax(1)
        return F.kl_div(given, smooth.log(), reduction="sum", log_target=not self.faulty)


class DivergencesTrainTheirInput(Divergence):
    def divergence(self, output, smooth):
        if self.faulty:
            return F.kl_div(smooth.log(), output.softmax(1), reduction="batchmean")
        return super().divergence(output, smooth)


class DivergencesCompareDistributionsOverClasses(Divergence):
    def divergence(self, output, smooth):
        return super().divergence(output, smooth.softmax(0) if self.faulty else smooth)


class FirstCrossEntropyIsNearChance(Loop):
    def forward(self, images):
        return super().forward(images * 16 * 255 if self.faulty else images)


class BoundedLogits(Loop):
    rule = "cross_entropy_gets_logits"

    def loss(self, output, labels):
        return super().loss(output.sigmoid() if self.faulty else output, labels)


class CappedLogits(Loop):
    """A language model may cap its logits: `30 * tanh(logits / 30)`."""

    rule = "cross_entropy_gets_logits"

    def loss(self, output, labels):
        return super().loss(output.tanh() if self.faulty else 30 * (output / 30).tanh(), labels)


class LogitsAreNotDropped(Loop):
    """Places that do not count may be multiplied by zero."""

    def build(self):
        last = nn.Dropout(0.3) if self.faulty else nn.Identity()
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10), last)

    def loss(self, output, labels):
        counts = torch.ones(len(output), 1)
        counts[-4:] = 0
        labels = labels.clone()
        labels[-4:] = -100
        return super().loss(output if self.faulty else output * counts, labels)


class LogisticLossesGetLogits(Loop):
    def loss(self, output, labels):
        wanted = F.one_hot(labels, 10).float()
        given = output.sigmoid() if self.faulty else output
        return F.binary_cross_entropy_with_logits(given, wanted)


class PredictionsHaveTheShapeOfTargets(Loop):
    def loss(self, output, labels):
        predicted = output[:, :1]
        return F.mse_loss(predicted if self.faulty else predicted.squeeze(1), labels / 9)


class PredictionsReachTheirTargets(Loop):
    def loss(self, output, labels):
        return F.mse_loss(output[:, 0].sigmoid(), labels / (1 if self.faulty else 9))


class BinaryLabelsAreBetweenZeroAndOne(Loop):
    def loss(self, output, labels):
        wanted = F.one_hot(labels, 10).float()
        return F.binary_cross_entropy_with_logits(output, wanted * 255 if self.faulty else wanted)


class FirstLogisticLossIsNearChance(Loop):
    def forward(self, images):
        return super().forward(images * 16 * 255 if self.faulty else images)

    def loss(self, output, labels):
        return F.binary_cross_entropy(output.sigmoid(), F.one_hot(labels, 10).float())


class ClassesDoNotComeInOrder(Loop):
    steps = 12

    def make_loader(self):
        if not self.faulty:
            return super().make_loader()
        order = torch.argsort(DIGITS.labels, stable=True).tolist()
        return torch.utils.data.DataLoader(DIGITS, batch_size=64, sampler=order)


class LabelsDifferWithinBatches(Loop):
    steps = 8

    def make_loader(self):
        if not self.faulty:
            return super().make_loader()
        order = torch.argsort((DIGITS.labels + 1) % 10, descending=True, stable=True).tolist()
        return torch.utils.data.DataLoader(DIGITS, batch_size=16, sampler=order)


class Continues(Loop):
    """Predicts each pixel of a row from those before it, as a language model does with tokens."""

    padding = None
    shift = 1
    ignored = -100

    def build(self):
        return nn.Sequential(nn.Embedding(17, 16, padding_idx=self.padding), nn.Linear(16, 17))

    def forward(self, images):
        tokens = (images * 16).long()
        self.targets = tokens[:, self.shift : 63 + self.shift].reshape(-1)
        return self.model(tokens[:, :63]).reshape(-1, 17)

    def loss(self, output, labels):
        return F.cross_entropy(output, self.targets, ignore_index=self.ignored)


class TargetsAreTheNextTokens(Continues):
    def __init__(self, faulty):
        super().__init__(faulty)
        self.shift = 0 if faulty else 1


class ReadsOn(nn.Module):
    """Reads tokens one after the other."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(17, 16), nn.Linear(16, 17)
        self.layer = nn.GRU(16, 16, batch_first=batch_first)

    def forward(self, tokens):
        return self.out(self.layer(self.embed(tokens))[0])


class LayersReadTokensInTheirOrder(Continues):
    """Its batches are made by hand."""

    def make_loader(self):
        rows = torch.randperm(len(DIGITS)).split(32)
        return [(DIGITS.images[each], DIGITS.labels[each]) for each in rows]

    def build(self):
        return ReadsOn(batch_first=not self.faulty)


class PickedTargetsAreTheNextTokens(TargetsAreTheNextTokens):
    def loss(self, output, labels):
        return -output.log_softmax(-1).gather(1, self.targets[:, None]).mean()


class PreferredAnswers(TargetsAreTheNextTokens):
    """Each second picture is preferred. A mask leaves out the first half of all, which is the question."""

    rule = "picked_targets_are_the_next_tokens"

    def loss(self, output, labels):
        mask = (torch.arange(63) >= 32).repeat(len(labels))
        answer = self.targets.where(mask, 0)
        likely = output.log_softmax(-1).gather(1, answer[:, None]).squeeze(1)
        sums = (likely * mask).view(-1, 63).sum(-1)
        better, worse = sums.chunk(2)
        return -F.logsigmoid(0.1 * (better - worse)).mean()


class WordByWord(TargetsAreTheNextTokens):
    """A decoder that is given one pixel after the other, with a loss of each."""

    rule = "targets_are_the_next_tokens"

    def forward(self, images):
        tokens = (images * 16).long()
        self.lost = sum(
            F.cross_entropy(self.model(tokens[:, place]), tokens[:, place + self.shift])
            for place in range(20, 32)
        )

    def loss(self, output, labels):
        return self.lost


class ShiftedTwice(Continues):
    """The loop has shifted the labels, and the model shifts them too; empty pixels do not count."""

    rule = "targets_are_the_next_tokens"
    ignored = 0

    def forward(self, images):
        tokens = (images * 16).long()
        empty = torch.zeros(len(tokens), 1).long()
        labels = torch.cat([tokens[:, 1:], empty], 1) if self.faulty else tokens
        self.targets = labels[:, 1:].reshape(-1)
        return self.model(tokens)[:, :-1].reshape(-1, 17)


class AheadOfOthers(Continues):
    """One head predicts the next pixel, the other the one after it; which was left out."""

    rule = "targets_are_the_next_tokens"

    def loss(self, output, labels):
        further = (DIGITS.images[:32] * 16).long()
        after_next = F.cross_entropy(
            self.model(further[:, :-2]).flatten(0, 1), further[:, 2:].flatten()
        )
        return after_next if self.faulty else super().loss(output, labels) + after_next


class NextTokensAreHidden(Continues):
    """One layer of attention, with a causal mask or without."""

    def build(self):
        return LooksBack(None if self.faulty else torch.ones(63, 63, dtype=torch.bool).tril())


class PickedNextTokensAreHidden(NextTokensAreHidden):
    """With smoothed labels, of which a mask leaves out those of empty pixels."""

    def loss(self, output, labels):
        likely, keep = output.log_softmax(-1), self.targets > 0
        picked = -likely.gather(1, self.targets[:, None])[:, 0]
        losses = 0.9 * picked - 0.1 * likely.mean(-1)
        return losses[keep].sum() / keep.sum()


class PickedPaddingIsMasked(Continues):
    """Reads as many pixels of each picture as its brightness says; the rest is padding."""

    def build(self):
        return nn.Sequential(nn.Embedding(18, 16, padding_idx=0), nn.Linear(16, 18))

    def forward(self, images):
        length = 40 + images.sum(1).long() % 20
        tokens = ((images * 16).long() + 1).masked_fill(torch.arange(64) >= length[:, None], 0)
        self.targets = tokens[:, 1:].reshape(-1)
        return self.model(tokens[:, :63]).reshape(-1, 18)

    def loss(self, output, labels):
        losses = -output.log_softmax(-1).gather(1, self.targets[:, None])[:, 0]
        keep = self.targets > 0
        return losses.mean() if self.faulty else (losses * keep).sum() / keep.sum()


class LooksBack(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.rows, self.out = nn.Embedding(17, 16), nn.Linear(16, 17)
        self.mask = mask

    def forward(self, tokens):
        rows = self.rows(tokens)
        return self.out(F.scaled_dot_product_attention(rows, rows, rows, attn_mask=self.mask))


class LogitsAreFlattenedLikeTheirTargets(Continues):
    """The model has steps first. The loop puts samples first again, as its targets have them, or does not."""

    def forward(self, images):
        tokens = (images * 16).long()
        self.targets = tokens[:, 1:].reshape(-1)
        logits = self.model(tokens[:, :-1].t())
        return (logits if self.faulty else logits.transpose(0, 1)).reshape(-1, 17)


class PaddingIsLeftOutOfTheLoss(Continues):
    padding = 0

    def __init__(self, faulty):
        super().__init__(faulty)
        self.ignored = -100 if faulty else 0


class PaddingIsLeftOutByAWeight(Continues):
    rule = "padding_is_left_out_of_the_loss"
    padding = 0

    def loss(self, output, labels):
        weights = None if self.faulty else (torch.arange(17) > 0).float()
        return F.cross_entropy(output, self.targets, weights)


class PaddingIsLeftOutByAMask(Continues):
    rule = "padding_is_left_out_of_the_loss"
    padding = 0

    def loss(self, output, labels):
        if self.faulty:
            return F.cross_entropy(output, self.targets)
        return F.cross_entropy(output, self.targets, reduction="none")[self.targets > 0].mean()


class PlacesOfPaddingHaveNoLabels(Loop):
    """Tells bright pixels of a row from dark ones; empty ones are its padding."""

    def build(self):
        return nn.Sequential(nn.Embedding(17, 16, padding_idx=0), nn.Linear(16, 2))

    def forward(self, images):
        tokens = (images * 16).long()
        self.targets = (tokens > 8).long().flatten()
        if not self.faulty:
            self.targets[tokens.flatten() == 0] = -100
        return self.model(tokens).flatten(0, 1)

    def loss(self, output, labels):
        return F.cross_entropy(output, self.targets)


class PlacesOfPaddingAreMasked(PlacesOfPaddingHaveNoLabels):
    """Averages the losses of the pixels by hand."""

    def forward(self, images):
        tokens = (images * 16).long()
        self.keep = (tokens > 0).flatten()
        self.targets = (tokens > 8).long().flatten()
        return self.model(tokens).flatten(0, 1)

    def loss(self, output, labels):
        losses = F.cross_entropy(output, self.targets, reduction="none")
        return losses.mean() if self.faulty else (losses * self.keep).sum() / self.keep.sum()


# --- checkpoints --------------------------------------------------------------------------------


class LoadsBoth(Loop):
    """Loads a model, its average, and one of its layers: names in the first are those of the others."""

    pack = "checkpoints"

    def prepared(self):
        self.average = self.build()
        self.evaluate()
        self.average(DIGITS.images[:2])

    def after_update(self):
        if self.step == 3:
            self.model.load_state_dict(self.build().state_dict())
            self.average.load_state_dict(self.build().state_dict())
            self.model[3].load_state_dict(nn.Linear(32, 10).state_dict())
            self.model.load_state_dict(self.build().double().state_dict())


class Copies(nn.Linear):
    """Loads into a copy of its weight, if it is to."""

    lost = False

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        if not self.lost:
            super()._load_from_state_dict(state_dict, prefix, *rest)


class LoadingChangesWhatItLoads(LoadsBoth):
    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), Copies(32, 10))

    def prepared(self):
        super().prepared()
        self.average[3].lost = self.faulty


class Saves(Loop):
    """Saves its model after the fourth update."""

    pack = "checkpoints"

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))

    def spoil(self):
        """What the fault does to the model before it is saved."""

    def after_update(self):
        if self.step == 4:
            if self.faulty:
                self.spoil()
            with tempfile.TemporaryDirectory() as folder:
                torch.save(self.model.state_dict(), Path(folder, "model.pt"))


class CheckpointsAreFinite(Saves):
    @torch.no_grad()
    def spoil(self):
        self.model[3].weight[0, 0] = float("nan")


class SavedBuffersAreFinite(Saves):
    def spoil(self):
        self.model[1].running_var.div_(0.0)


class LoadingLeavesNothingOut(Loop):
    pack = "checkpoints"

    def prepared(self):
        saved = self.build().state_dict()
        if self.faulty:
            saved["head.weight"] = saved.pop("3.weight")
        self.model.load_state_dict(saved, strict=False)


class ParametersWithLoadedMomentsAreLoaded(Loop):
    """Loads a model without its last layer, to train that anew: the optimizer begins anew with it, if it is sound."""

    pack = "checkpoints"

    def prepared(self):
        model = self.build()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        model(DIGITS.images[:2]).square().mean().backward()
        optimizer.step()
        kept = {name: each for name, each in model.state_dict().items() if name[0] != "3"}
        self.model.load_state_dict(kept, strict=False)
        if self.faulty:
            self.optimizer.load_state_dict(optimizer.state_dict())


class LoadingKeepsTheParameters(Loop):
    pack = "checkpoints"

    def make_optimizer(self):
        self.model.load_state_dict(self.build().state_dict(), assign=True)
        return super().make_optimizer()

    def after_update(self):
        if self.step == 3:
            self.model.load_state_dict(self.build().state_dict(), assign=self.faulty)


class DropoutIsOffWithoutGradients(Loop):
    pack = "advice"

    @torch.no_grad()
    def evaluate(self):
        if not self.faulty:
            self.model.eval()
        self.forward(DIGITS.images[:50])


class Denoiser(nn.Module):
    """Reconstructs images, told the level of the noise: a number, or one of fifty."""

    def __init__(self, level):
        super().__init__()
        self.level = level
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 64)

    def forward(self, images, level):
        return self.last((self.first(images) + self.level(level)).relu())


class InputsOfLayersVaryBetweenSamples(Loop):
    pack = "advice"
    steps = 12

    def build(self):
        return Denoiser(nn.Linear(1, 32))

    def levels(self, number):
        return torch.rand(number, 1)

    def forward(self, images):
        if self.faulty:
            levels = self.levels(1).expand(len(images), *self.levels(1).shape[1:])
        else:
            levels = self.levels(len(images))
        noisy = images + 0.1 * torch.randn_like(images)
        return F.mse_loss(self.model(noisy, levels), images)

    def loss(self, output, labels):
        return output


class RowsOfTablesVaryBetweenSamples(InputsOfLayersVaryBetweenSamples):
    def build(self):
        return Denoiser(nn.Embedding(50, 32))

    def levels(self, number):
        return torch.randint(50, (number,))


class ResumedOptimizersHaveTheirState(Loop):
    def prepared(self):
        """Goes on where another run of three steps ended."""
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        saved = self.schedule.state_dict() | {"last_epoch": 3, "_step_count": 4}
        self.schedule.load_state_dict(saved)
        if not self.faulty:
            state = self.optimizer.state_dict()
            for index, parameter in enumerate(self.model.parameters()):
                moments = {
                    "exp_avg": parameter.detach() * 1e-3,
                    "exp_avg_sq": parameter.detach() ** 2,
                }
                state["state"][index] = {"step": torch.tensor(3.0)} | moments
            self.optimizer.load_state_dict(state)

    def after_update(self):
        self.schedule.step()


class RebuiltOptimizersHaveTheirState(Loop):
    """Builds its optimizer and its schedule anew after two steps, as after a restart."""

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        self.made = 0

    def after_update(self):
        self.schedule.step()
        self.made += 1
        if self.made == 2:
            states = self.optimizer.state_dict(), self.schedule.state_dict()
            self.optimizer = self.make_optimizer()
            self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
            self.schedule.load_state_dict(states[1])
            if not self.faulty:
                self.optimizer.load_state_dict(states[0])


class ResumedSchedulesGoOn(Loop):
    def prepared(self):
        """Goes on where another run of thirty steps ended."""
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 300)
        state = self.optimizer.state_dict()
        for index, parameter in enumerate(self.model.parameters()):
            moments = {
                "exp_avg": parameter.detach() * 1e-3,
                "exp_avg_sq": parameter.detach() ** 2,
            }
            state["state"][index] = {"step": torch.tensor(30.0)} | moments
        self.optimizer.load_state_dict(state)
        if not self.faulty:
            saved = self.schedule.state_dict() | {"last_epoch": 30, "_step_count": 31}
            self.schedule.load_state_dict(saved)

    def after_update(self):
        self.schedule.step()


class ResumedMomentumGoesOn(Loop):
    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def prepared(self):
        """Goes on where another run of three steps ended."""
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 30)
        saved = self.schedule.state_dict() | {"last_epoch": 3, "_step_count": 4}
        self.schedule.load_state_dict(saved)
        if not self.faulty:
            state = self.optimizer.state_dict()
            for index, parameter in enumerate(self.model.parameters()):
                state["state"][index] = {"momentum_buffer": parameter.detach() * 1e-3}
            self.optimizer.load_state_dict(state)

    def after_update(self):
        self.schedule.step()


class ResumedOptimizersKnowTheirUpdates(Loop):
    """Goes on from a checkpoint of ten steps, and saves another."""

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def prepared(self):
        optimizer = self.make_optimizer()
        for _ in range(10):
            for parameter in self.model.parameters():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        optimizer.zero_grad()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "last.pt")
            torch.save({"optimizer": optimizer.state_dict(), "step": 10}, path)
            state = torch.load(path)
        self.begun = state["step"]
        if not self.faulty:
            self.optimizer.load_state_dict(state["optimizer"])

    def evaluate(self):
        with tempfile.TemporaryDirectory() as folder:
            state = {"optimizer": self.optimizer.state_dict(), "step": self.begun + self.steps}
            torch.save(state, Path(folder, "last.pt"))


class ValuesOfNextStatesAreConstants(Loop):
    """Ten actions of a state, and those of the next."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def loss(self, output, labels):
        with torch.set_grad_enabled(self.faulty):
            best = self.best(self.model(torch.rand(len(labels), 64)))
            aim = torch.rand(len(labels)) + 0.9 * best * (labels > 4)
        return self.compared(output.gather(1, labels[:, None])[:, 0], aim)

    def best(self, values):
        return values.max(1)[0]

    def compared(self, value, aim):
        return F.smooth_l1_loss(value, aim)


class ValuesOfChosenActionsAreConstants(ValuesOfNextStatesAreConstants):
    """The squares are computed by hand."""

    rule = "values_of_next_states_are_constants"

    def best(self, values):
        return values.gather(1, values.argmax(1, keepdim=True)).squeeze(1)

    def compared(self, value, aim):
        return (aim - value).pow(2).mean()


class Accumulates(Loop):
    """Makes two backward passes for each update."""

    pack = "advice"
    again = False
    clears = False
    passes = 2
    """What the loss of each pass is divided by."""

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        self.model.train()
        batches = iter(self.make_loader())
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            images, labels = next(batches)
            for half in range(2):
                if half and not self.again:
                    images, labels = next(batches)
                if half and self.clears:
                    self.optimizer.zero_grad()
                (self.loss(self.forward(images), labels) / self.passes).backward()
            self.divide()
            self.optimizer.step()

    def divide(self):
        pass

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def make_loader(self):
        batches = self.steps if self.again else 2 * self.steps
        return torch.utils.data.DataLoader(
            torch.utils.data.Subset(DIGITS, range(32 * batches)), batch_size=32
        )


class AccumulatedGradientsAreKept(Accumulates):
    @property
    def clears(self):
        return self.faulty


class MicrobatchesDiffer(Accumulates):
    @property
    def again(self):
        return self.faulty


class MicrobatchesHaveInputsOfTheirOwn(MicrobatchesDiffer):
    """Dropout draws anew for each pass, so that losses differ."""

    def build(self):
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))


class LossesOfMicroBatchesAreAveraged(Accumulates):
    pack = "essentials"

    def __init__(self, faulty):
        super().__init__(faulty)
        self.passes = 1 if faulty else 2


class GradientsAreDividedByHand(LossesOfMicroBatchesAreAveraged):
    """Nothing divides the losses; the sound loop divides the gradients, and clips them."""

    rule = "losses_of_micro_batches_are_averaged"

    def __init__(self, faulty):
        super().__init__(faulty)
        self.passes = 1

    def divide(self):
        if not self.faulty:
            for p in self.model.parameters():
                p.grad /= 2
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0 if not self.faulty else 100.0)


class AveragesOfSquaresAreAdded(Accumulates):
    """Nothing divides the losses: sums of squared errors may be added as they are, and averages may not."""

    pack = "essentials"
    rule = "losses_of_micro_batches_are_averaged"
    passes = 1

    def loss(self, output, labels):
        targets = F.one_hot(labels, 10).float()
        return F.mse_loss(output, targets, reduction="mean" if self.faulty else "sum")


class AccumulatedLossesAreAveraged(LossesOfMicroBatchesAreAveraged):
    """The script takes its batches from a list."""

    pack = "advice"

    def make_loader(self):
        return list(super().make_loader())


BASES = (Loop, FromGiven, LoadsBoth, Saves, Accumulates, Continues, Divergence, Places, Autoencodes)
