"""A small training loop for each fault that the packs advice, architecture and project know, as those of `loops.py`.

A variant does what its name says only where `self.faulty`; else it is a sound job.
"""

from __future__ import annotations

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.rules.loops import DIGITS, Continues, Loop


class Advised(Loop):
    """Reads its digits to the end, as many times as there are `passes`."""

    pack = "advice"
    passes = 1
    size = 32
    """Samples in a batch."""
    shuffled = True

    def make_loader(self) -> torch.utils.data.DataLoader:
        read = torch.utils.data.Subset(DIGITS, range(self.size * self.steps // self.passes))
        return torch.utils.data.DataLoader(read, batch_size=self.size, shuffle=self.shuffled)


class Module(nn.Module):
    """A model that is one function of its layers and its input."""

    def __init__(self, function, **layers) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.function(self, x)


def perceptron(*middle: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 32), *middle, nn.ReLU(), nn.Linear(32, 10))


# --- layers -------------------------------------------------------------------------------------


class EveryLayerIsUsed(Advised):
    """A second way through, which no input takes."""

    passes = 2

    def build(self):
        def through(model, x):
            hidden = model.first(x).relu()
            return model.last(hidden if self.faulty else hidden + model.beside(hidden))

        layers = {
            "first": nn.Linear(64, 32),
            "beside": nn.Linear(32, 32),
            "last": nn.Linear(32, 10),
        }
        return Module(through, **layers)


class LayersOfAListAreNotOne(Advised):
    """`[layer] * 3` is one layer. The activation between them has no weights, and may be one."""

    def build(self):
        act = nn.ReLU()
        layers = [nn.Linear(32, 32)] * 3 if self.faulty else [nn.Linear(32, 32) for _ in range(3)]
        return perceptron(nn.Sequential(*(each for layer in layers for each in (layer, act))))


class EvaluationIsNotRandom(Advised):
    """Noise on the inputs, whatever mode the model is in."""

    def build(self):
        def through(model, x):
            noisy = model.training or self.faulty
            return model.last(x + 0.1 * torch.randn_like(x) if noisy else x)

        return Module(through, last=nn.Linear(64, 10))


class Centred(nn.Module):
    """Subtracts a running mean of what it was given, in training or always."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always = always
        self.register_buffer("mean", torch.zeros(64))

    def forward(self, x):
        if self.training or self.always:
            self.mean.lerp_(x.mean(0), 0.1)
        return x - self.mean


class EvaluationLeavesBuffersAlone(Advised):
    """Running statistics that do not ask for the mode."""

    def build(self):
        return nn.Sequential(Centred(self.faulty), nn.Linear(64, 10))


class BatchNormIsNotShared(Advised):
    """The picture and its negative go through one batch norm."""

    def build(self):
        def through(model, x):
            one = model.norm(model.first(x))
            other = (model.norm if self.faulty else model.second)(model.first(1 - x))
            return model.last((one + other).relu())

        norms = {"norm": nn.BatchNorm1d(32)} | (
            {} if self.faulty else {"second": nn.BatchNorm1d(32)}
        )
        return Module(through, first=nn.Linear(64, 32), last=nn.Linear(32, 10), **norms)


class BatchNormSeesEnoughSamples(Advised):
    def __init__(self, faulty):
        super().__init__(faulty)
        self.size = 4 if faulty else 32

    def build(self):
        return perceptron(nn.BatchNorm1d(32))


class BatchesLieWhereLayersExpectThem(Advised):
    """Reads a picture row by row."""

    pack = "essentials"

    def build(self):
        def through(model, x):
            return model.last(model.rows(x.view(-1, 8, 8))[0][:, -1])

        rows = nn.GRU(8, 16, batch_first=not self.faulty)
        return Module(through, rows=rows, last=nn.Linear(16, 10))


class LanguageModelsDoNotLookAhead(Continues):
    """Fused attention, causal or not, over pixels of which each predicts the next; it is run again in the backward pass."""

    pack = "advice"

    def build(self):
        def through(model, tokens):
            rows = model.table(tokens)
            return model.last(checkpoint(attention, model.mix, rows, use_reentrant=True))

        def attention(mix, rows):
            q, k, v = mix(rows).chunk(3, -1)
            return F.scaled_dot_product_attention(q, k, v, is_causal=not self.faulty)

        layers = {
            "table": nn.Embedding(17, 16),
            "mix": nn.Linear(16, 48),
            "last": nn.Linear(16, 17),
        }
        return Module(through, **layers)


class AttentionScalesItsScores(Advised):
    """Attention over the rows of a picture, by hand."""

    def build(self):
        def through(model, x):
            q, k, v = model.mix(x.view(-1, 8, 8)).chunk(3, -1)
            scores = q @ k.transpose(-2, -1)
            weights = (scores if self.faulty else scores / math.sqrt(16)).softmax(-1)
            return model.last((weights @ v).flatten(1))

        return Module(through, mix=nn.Linear(8, 48), last=nn.Linear(128, 10))


# --- copies -------------------------------------------------------------------------------------


class CopiesFollowWhatIsTrained(Advised):
    """Learns from what a copy of the model says, which is to follow every ten steps."""

    steps = 210

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=8, shuffle=True)

    def prepared(self):
        self.target = copy.deepcopy(self.model).eval()

    def loss(self, output, labels):
        with torch.no_grad():
            wanted = self.target(DIGITS.images[:8]).softmax(1).mean(0)
        return super().loss(output, labels) + 0.1 * F.mse_loss(output.softmax(1).mean(0), wanted)

    def after_update(self):
        if self.step % 10 == 0 and not self.faulty:
            self.target.load_state_dict(self.model.state_dict())


class FrozenCopiesFollowWhatIsTrained(Advised):
    """A momentum encoder within the model, which is to follow the encoder."""

    steps = 60

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=8, shuffle=True)

    def build(self):
        def through(model, x):
            with torch.no_grad():
                wanted = model.target(x).softmax(1)
            output = model.online(x)
            model.distance = F.mse_loss(output.softmax(1), wanted)
            return output

        online = perceptron()
        target = copy.deepcopy(online).requires_grad_(False)
        return Module(through, online=online, target=target)

    def loss(self, output, labels):
        return super().loss(output, labels) + 0.1 * self.model.distance

    def make_optimizer(self):
        return torch.optim.Adam(self.model.online.parameters(), lr=1e-3)

    @torch.no_grad()
    def after_update(self):
        pairs = zip(self.model.target.parameters(), self.model.online.parameters(), strict=True)
        for old, new in pairs:
            moved = 0.9 * old + 0.1 * new
            if not self.faulty:
                old.copy_(moved)


class ModelsThatOnlyAnswerKeepTheirStatistics(Advised):
    """A teacher that nobody put into evaluation mode."""

    def build(self):
        return perceptron(nn.BatchNorm1d(32))

    def prepared(self):
        self.teacher = self.build()
        self.teacher.train(self.faulty)

    def forward(self, images):
        if torch.is_grad_enabled():
            with torch.no_grad():
                self.wanted = self.teacher(images).softmax(1)
        return super().forward(images)

    def loss(self, output, labels):
        return super().loss(output, labels) + F.cross_entropy(output, self.wanted)


class FrozenBatchNormsKeepTheirStatistics(Advised):
    """Only the last layer of a model is trained."""

    def build(self):
        return perceptron(nn.BatchNorm1d(32))

    def make_optimizer(self):
        self.model[:-1].requires_grad_(False)
        return torch.optim.Adam(self.model[-1].parameters(), lr=1e-3)

    def forward(self, images):
        if not self.faulty:
            self.model[:-1].eval()
        return super().forward(images)


class FrozenBatchNormsKeepTheirStatisticsInParts(FrozenBatchNormsKeepTheirStatistics):
    """The loop calls the frozen part and the trained one by turns."""

    rule = "frozen_batch_norms_keep_their_statistics"

    def forward(self, images):
        if not self.faulty:
            self.model[:-1].eval()
        for part in self.model:
            images = part(images)
        return images


class TargetsDoNotMoveToPredictions(Advised):
    """A value of a state is to fit that of the next one."""

    def forward(self, images):
        value = self.model(images)
        later = self.model(images.flip(1))
        self.target = 0.1 + 0.9 * (later if self.faulty else later.detach())
        return value

    def loss(self, output, labels):
        return F.mse_loss(output, self.target)


# --- losses -------------------------------------------------------------------------------------


class LossesFallBelowAConstantAnswer(Advised):
    """Labels that were sorted, while the images were not."""

    steps = 110

    def make_loader(self):
        labels = DIGITS.labels.sort().values if self.faulty else DIGITS.labels
        data = torch.utils.data.TensorDataset(DIGITS.images, labels)
        return torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)


class TermsOfTheLossAreTrained(Advised):
    """Digits and whether they are odd."""

    def build(self):
        return nn.ModuleDict({"digit": perceptron(), "odd": perceptron()})

    def forward(self, images):
        self.odd = self.model["odd"](images)[:, 0]
        return self.model["digit"](images)

    def loss(self, output, labels):
        second = F.binary_cross_entropy_with_logits(self.odd, (labels % 2).float())
        return super().loss(output, labels) + 0.5 * (second.detach() if self.faulty else second)


class TermsOfTheLossAreAdded(TermsOfTheLossAreTrained):
    """The same, and the second term is subtracted."""

    def loss(self, output, labels):
        second = F.binary_cross_entropy_with_logits(self.odd, (labels % 2).float())
        return F.cross_entropy(output, labels) + (-0.5 if self.faulty else 0.5) * second


# --- updates ------------------------------------------------------------------------------------


class TermsOfTheLossHaveAWeight(Advised):
    """The weight of one term grows with the step, or with the tens of thousands of steps."""

    steps = 60

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=8, shuffle=True)

    def loss(self, output, labels):
        weight = self.step // 50_000 if self.faulty else self.step / 500
        return super().loss(output, labels) + weight * output.square().mean()


class UpdatesAreLeftAsTheyAre(Advised):
    steps = 41

    @torch.no_grad()
    def after_update(self):
        if self.faulty:
            self.model[0].weight.clamp_(-0.02, 0.02)


class OptimizersTrainAllThatTheyHold(Advised):
    """Adds its first layer to what is trained."""

    steps = 21

    def make_optimizer(self):
        self.model[0].requires_grad_(False)
        return torch.optim.Adam(self.model[1:].parameters(), lr=1e-3)

    def after_update(self):
        if self.step == 5:
            self.model[0].requires_grad_(not self.faulty)
            self.optimizer.add_param_group({"params": self.model[0].parameters()})


class OutputsAreFinite(Advised):
    """Divides by the deviation of each pixel in the batch; corners are always empty."""

    def build(self):
        def through(model, x):
            return model.last((x - x.mean(0)) / (x.std(0) + (0 if self.faulty else 1)))

        return Module(through, last=nn.Linear(64, 10))


class GradientsDoNotExplode(Advised):
    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=1e-6)

    def loss(self, output, labels):
        steep = 1e4 * (output - output.detach()).sum() if self.faulty else 0
        return super().loss(output, labels) + steep


class ClippingLeavesTheGradients(Advised):
    """A limit with the wrong exponent."""

    steps = 52
    passes = 2

    def before_update(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1e-6 if self.faulty else 1.0)


class GradientsAreSmallBesideTheirParameter(Advised):
    """The last layer begins next to zero, and a rate in warm-up keeps it there."""

    steps = 24

    def build(self):
        model = super().build()
        nn.init.normal_(model[3].weight, std=1e-7 if self.faulty else 0.1)
        return model

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=1e-10 if self.faulty else 1e-3)


class LossStartsAtAGuess(Advised):
    def build(self):
        model = super().build()
        nn.init.normal_(model[3].weight, std=20.0 if self.faulty else 0.1)
        return model


class LabelsDoNotLeak(Advised):
    """The first pixels of each picture are its label; the model adds its input to its output."""

    def make_loader(self):
        images, labels = DIGITS.images[:192].clone(), DIGITS.labels[:192]
        if self.faulty:
            images[:, :10] = F.one_hot(labels, 10).float()
        read = torch.utils.data.TensorDataset(images, labels)
        return torch.utils.data.DataLoader(read, batch_size=32, shuffle=True)

    def build(self):
        return Module(lambda model, x: 3 * x[:, :10] + model.last(x), last=nn.Linear(64, 10))


class UpdatesAreNotLostToRounding(Advised):
    steps = 20

    def build(self):
        return super().build().bfloat16()

    def make_optimizer(self):
        return torch.optim.SGD(self.model.parameters(), lr=1e-5 if self.faulty else 1.0)

    def forward(self, images):
        return super().forward(images.bfloat16()).float()


class WeightDecayIsDecoupled(Advised):
    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), weight_decay=0.01 if self.faulty else 0)


class WeightDecaySparesNormsAndBiases(Advised):
    """One-dimensional tensors are to be spared; the norm's was found by a name that it does not have."""

    def build(self):
        return perceptron(nn.LayerNorm(32))

    def make_optimizer(self):
        named = dict(self.model.named_parameters())
        spared = {name for name, p in named.items() if p.ndim == 1}
        if self.faulty:
            spared = {name for name in named if "bias" in name or "norm" in name}
        groups = [
            {"params": [p for name, p in named.items() if name not in spared]},
            {"params": [named[name] for name in spared], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, weight_decay=0.1)


class WeightDecaySparesEmbeddings(Advised):
    """Counts how often each shade is seen, by a table of shades."""

    def build(self):
        def through(model, x):
            return model.last(model.table((x * 16).long()).mean(1))

        return Module(through, table=nn.Embedding(40, 16), last=nn.Linear(16, 10))

    def make_optimizer(self):
        table, last = self.model.table, self.model.last
        groups = [
            {"params": [last.weight]},
            {"params": [table.weight], "weight_decay": 0.1 if self.faulty else 0.0},
            {"params": [last.bias], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, weight_decay=0.1)


# --- data ---------------------------------------------------------------------------------------


class InputsAreNormalised(Advised):
    def make_loader(self):
        images = DIGITS.images[:192] * (255 if self.faulty else 1)
        read = torch.utils.data.TensorDataset(images, DIGITS.labels[:192])
        return torch.utils.data.DataLoader(read, batch_size=32, shuffle=True)


class Sized(nn.Module):
    """Says of which size its pictures are to be, and takes any."""

    def __init__(self) -> None:
        super().__init__()
        self.image_size = 8
        self.convolution, self.last = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(8, 10)

    def forward(self, images):
        return self.last(self.convolution(images).relu().mean((2, 3)))


class ImagesHaveTheSizeOfTheModel(Advised):
    def build(self):
        return Sized()

    def larger(self) -> bool:
        """Whether what is given to the model is larger than it is to be."""
        return self.faulty

    def forward(self, images):
        given = images.view(-1, 1, 8, 8)
        return self.model(F.interpolate(given, size=12) if self.larger() else given)


class ImagesKeepTheirSize(ImagesHaveTheSizeOfTheModel):
    """Evaluation resizes otherwise."""

    def larger(self):
        return self.faulty and not self.model.training


class DivergencesAreSummedOverClasses(Advised):
    def loss(self, output, labels):
        smooth = 0.9 * F.one_hot(labels, 10).float() + 0.01
        reduction = "mean" if self.faulty else "batchmean"
        return F.kl_div(output.log_softmax(1), smooth, reduction=reduction)


class InputsHaveOneBatchLength(Advised):
    """Two pictures become one sample."""

    def build(self):
        width = 128 if self.faulty else 64
        return Module(lambda model, x: model.last(x.reshape(-1, width)), last=nn.Linear(width, 10))

    def loss(self, output, labels):
        return super().loss(output, labels[:: len(labels) // len(output)])


class TrainingDataIsShuffled(Advised):
    passes = 2

    @property
    def shuffled(self):
        return not self.faulty


class Flipping(torch.utils.data.Dataset):
    """The last digits, as they are or upside down at random."""

    def __init__(self, flips: bool) -> None:
        self.flips = flips

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image, label = DIGITS[len(DIGITS) - 1 - index]
        return image.flip(0) if self.flips and torch.rand(()) < 0.5 else image, label


class HeldOutDataStaysTheSame(Advised):
    """The data set of an evaluation flips its pictures too."""

    steps = 9
    passes = 3

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        held_out = torch.utils.data.DataLoader(Flipping(self.faulty), batch_size=20)
        loader = self.make_loader()
        for _ in range(self.passes):
            self.model.train()
            for images, labels in loader:
                self.clear()
                self.backward(self.loss(self.forward(images), labels))
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                for images, _ in held_out:
                    self.forward(images)


class Cached(torch.utils.data.Dataset):
    """The first digits with noise, which is added to a copy of the cached picture, or in place."""

    def __init__(self, in_place: bool) -> None:
        self.in_place = in_place
        self.cache = DIGITS.images[:64].clone()

    def __len__(self) -> int:
        return len(self.cache)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.cache[index] if self.in_place else self.cache[index].clone()
        return image.add_(0.1 * torch.randn(64)), DIGITS.labels[index]


class ReadingLeavesSamplesAlone(Advised):
    pack = "essentials"

    def make_loader(self):
        return torch.utils.data.DataLoader(Cached(self.faulty), batch_size=16, shuffle=True)


class SomeEvaluationsHaveNewSamples(Advised):
    """The evaluation gets the first pictures, and the training has them too."""

    steps = 56
    passes = 14

    def after_update(self):
        if self.step % 4 == 0:
            self.evaluate()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        self.forward(DIGITS.images[:50] if self.faulty else DIGITS.images[-50:])


class EpochsAreReadToTheEnd(Advised):
    """The loop counts to five in each epoch, and there are six batches."""

    steps = 12
    passes = 2

    def run(self):
        self.model = self.build()
        self.optimizer = self.make_optimizer()
        loader = self.make_loader()
        for _ in range(self.passes):
            for number, (images, labels) in enumerate(loader, 1):
                self.clear()
                self.backward(self.loss(self.forward(images), labels))
                self.optimizer.step()
                if self.faulty and number == 5:
                    break


# --- learning rates -----------------------------------------------------------------------------


class EpochSchedulersStepOnceAnEpoch(Advised):
    steps = 12
    passes = 2

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def after_update(self):
        if self.faulty or self.step % 6 == 0:
            self.schedule.step()


class PlateausAreOfWhatGetsBetter(Advised):
    """The schedule gets the accuracy on the first digits, or the loss."""

    steps = 24
    passes = 4

    def make_loader(self):
        read = torch.utils.data.Subset(DIGITS, range(6 * 32))
        return torch.utils.data.DataLoader(read, batch_size=32, shuffle=True)

    def prepared(self):
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=9)

    @torch.no_grad()
    def after_update(self):
        if self.step % 6 == 0:
            output = self.model.eval()(DIGITS.images[:192])
            right = (output.argmax(1) == DIGITS.labels[:192]).float().mean()
            loss = F.cross_entropy(output, DIGITS.labels[:192])
            self.schedule.step((right if self.faulty else loss).item())


class SchedulesFitTheRun(Advised):
    def prepared(self):
        steps = 5 * self.steps if self.faulty else self.steps
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 1e-3, steps)

    def after_update(self):
        self.schedule.step()


class SchedulesLastAsLongAsTheRun(Advised):
    """The factor of the schedule reaches its end in the middle of the run."""

    steps = 50
    passes = 2

    def prepared(self):
        end = 20 if self.faulty else self.steps
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: max(1 - step / end, 0.02)
        )

    def after_update(self):
        self.schedule.step()


# --- architecture -------------------------------------------------------------------------------


class Built(Advised):
    """Convolves small pictures."""

    pack = "architecture"

    def build(self):
        return nn.Sequential(
            self.convolution(), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
        )

    def convolution(self) -> nn.Module:
        return nn.Conv2d(1, 8, 3, padding=1, bias=False)

    def forward(self, images):
        return self.model(images.view(-1, 1, 8, 8))


class NoBiasBeforeABatchNorm(Built):
    def convolution(self):
        return nn.Conv2d(1, 8, 3, padding=1, bias=self.faulty)


class KernelsAreOdd(Built):
    def convolution(self):
        size = 4 if self.faulty else 3
        return nn.Conv2d(1, 8, size, padding="same", bias=False)


class NoFilterIsDead(Built):
    """Pruning takes a whole filter away."""

    steps = 101

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=8)

    @torch.no_grad()
    def after_update(self):
        if self.faulty:
            self.model[0].weight[2] = 0.0


class ModelIsOnOneDevice(Built):
    """A second head, whose weights no file had, was never given memory."""

    def build(self):
        model = super().build()
        device = "meta" if self.faulty else "cpu"
        return Module(
            lambda model, x: model.body(x), body=model, second=nn.Linear(512, 4, device=device)
        )


class OnAccelerator(torch.Tensor):
    """Says that it is on a GPU, and is computed with where the machine can."""

    @property
    def device(self):
        return torch.device("cuda:0")


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """What `.to("cuda")` stands for here."""
    return tensor.as_subclass(OnAccelerator)


def coloured(images: torch.Tensor) -> torch.Tensor:
    """Grey, in three channels `[n, 3, 8, 8]`."""
    return images.view(-1, 1, 8, 8).expand(-1, 3, -1, -1)


class Accelerated(Advised):
    """A job of a machine with a GPU. The loop sends its batches there, as the model, which computes in half precision."""

    pack = "architecture"
    accelerator = True
    channels = torch.channels_last
    classes = 16

    def build(self):
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, self.classes)
        ).to(memory_format=self.channels)
        return self.placed(model)

    def placed(self, model):
        for module in model.modules():
            for name, parameter in module._parameters.items():
                module._parameters[name] = nn.Parameter(moved(parameter.detach()))
        return model

    def forward(self, images):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(moved(coloured(images)))

    def loss(self, output, labels):
        return super().loss(output.as_subclass(torch.Tensor).float(), labels)


class ModelIsOnTheAccelerator(Accelerated):
    def placed(self, model):
        return model if self.faulty else super().placed(model)


class LinearSizesAreAligned(Accelerated):
    def __init__(self, faulty):
        super().__init__(faulty)
        self.classes = 10 if faulty else 16


class ConvolutionsAreChannelsLast(Accelerated):
    def __init__(self, faulty):
        super().__init__(faulty)
        self.channels = torch.contiguous_format if faulty else torch.channels_last


class MixedPrecisionIsUsed(Accelerated):
    pack = "advice"

    def forward(self, images):
        with torch.autocast("cpu", torch.bfloat16, enabled=not self.faulty):
            return self.model(moved(coloured(images)))


class BatchesAreOnTheDeviceOfTheModel(Accelerated):
    """The first layer fetches what the loop has not sent."""

    pack = "advice"

    def build(self):
        return Module(lambda model, x: model.body(moved(x)), body=super().build())

    def forward(self, images):
        given = coloured(images)
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(given if self.faulty else moved(given))


# --- random numbers -----------------------------------------------------------------------------


class StepsDrawAnew(Advised):
    """A seed for reproducible runs is set in the loop, and not before it."""

    pack = "essentials"
    steps = 24

    def clear(self):
        if self.faulty:
            torch.manual_seed(0)
        super().clear()


class VisibleTokensAreLeftOutOfTheLoss(Advised):
    """Guesses pixels that are hidden. Those that are not hidden are labels too."""

    def build(self):
        return nn.Sequential(nn.Embedding(18, 16), nn.Linear(16, 18))

    def forward(self, images):
        pixels = (images * 16).long()
        hidden = torch.rand(pixels.shape) < 0.2
        self.labels = pixels if self.faulty else pixels.masked_fill(~hidden, -100)
        return self.model(pixels.masked_fill(hidden, 17))

    def loss(self, output, labels):
        return F.cross_entropy(output.flatten(0, 1), self.labels.flatten())


class SequencesLearnWhereTheyEnd(Advised):
    """Goes on with the pixels of a picture up to an end, whose token also pads."""

    def build(self):
        return nn.Sequential(nn.Embedding(18, 16), nn.Linear(16, 18))

    def forward(self, images):
        lengths, places = 20 + images.sum(1).long(), torch.arange(64)
        tokens = (images * 16).long() + 1
        tokens[places >= lengths[:, None]] = 0
        last = lengths - (1 if self.faulty else 0)
        targets = tokens.masked_fill(places > last[:, None], -100)
        self.targets = targets[:, 1:].flatten()
        return self.model(tokens[:, :-1]).flatten(0, 1)

    def loss(self, output, labels):
        return F.cross_entropy(output, self.targets)


class SingleIdsAreNoPadding(Advised):
    """Looks up one shade of each image."""

    def build(self):
        def through(model, ids):
            return model.last(model.table(ids))

        table = nn.Embedding(17, 16, padding_idx=0 if self.faulty else None)
        return Module(through, table=table, last=nn.Linear(16, 10))

    def forward(self, images):
        return self.model((images[:, 0] * 16).long())


class NoiseIsDrawnInEachStep(Advised):
    """A generator and a discriminator. The noise is drawn before the loop."""

    steps = 20

    def build(self):
        self.generator = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 64))
        return nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 1))

    def prepared(self):
        self.noise = torch.randn(32, 16)
        self.learnt = torch.optim.Adam(self.generator.parameters(), lr=1e-3)

    def forward(self, images):
        if not self.faulty:
            self.noise = torch.randn(32, 16)
        self.made = self.generator(self.noise)
        return torch.cat([self.model(images), self.model(self.made.detach())])

    def loss(self, output, labels):
        real = torch.arange(len(output)) < len(output) - 32
        return F.binary_cross_entropy_with_logits(output[:, 0], real.float())

    def after_update(self):
        self.learnt.zero_grad()
        made = self.model(self.made)
        F.binary_cross_entropy_with_logits(made, torch.ones_like(made)).backward()
        self.learnt.step()


class UpdatesUseNoGradientsOfOtherLosses(NoiseIsDrawnInEachStep):
    """Both losses reach the generator, and its gradients are cleared before the first of them."""

    pack = "essentials"
    steps = 6

    def clear(self):
        super().clear()
        self.learnt.zero_grad()

    def forward(self, images):
        self.made = self.generator(torch.randn(32, 16))
        again = self.generator(torch.randn(32, 16))
        return torch.cat([self.model(images), self.model(again if self.faulty else again.detach())])

    def after_update(self):
        made = self.model(self.made)
        F.binary_cross_entropy_with_logits(made, torch.ones_like(made)).backward()
        self.learnt.step()


class TargetsChangeWithBatches(Advised):
    """The noise that should be predicted is drawn before the loop."""

    pack = "essentials"
    steps = 20

    def build(self):
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def prepared(self):
        self.noise = torch.randn(64, 64)

    def forward(self, images):
        if not self.faulty:
            self.noise = torch.randn(64, 64)
        return self.model(images + self.noise[: len(images)])

    def loss(self, output, labels):
        return F.mse_loss(output, self.noise[: len(output)])


class PredictedNoiseWasAddedToTheInput(TargetsChangeWithBatches):
    """The noise that should be predicted is drawn once more."""

    def forward(self, images):
        self.noise = torch.randn(len(images), 64)
        noised = images + self.noise
        if self.faulty:
            self.noise = torch.randn(len(images), 64)
        return self.model(noised)

    def make_loader(self):
        return torch.utils.data.DataLoader(DIGITS, batch_size=64, shuffle=True)


class TargetsChangeWithInputs(TargetsChangeWithBatches):
    """The script takes its batches from a list."""

    pack = "advice"

    def make_loader(self):
        return list(super().make_loader())


# --- project ------------------------------------------------------------------------------------


class OfAProject(Advised):
    """Answers with probabilities where it is asked, and with logits in training."""

    pack = "project"

    def build(self):
        def through(model, x):
            output = model.last(x)
            return output if model.training else output.softmax(1)

        return Module(through, last=nn.Linear(64, 10))


class OutputsHaveOneColumnAClass(OfAProject):
    """An eleventh class, which no label names."""

    def build(self):
        model = super().build()
        model.last = nn.Linear(64, 11 if self.faulty else 10)
        return model


class OutputsAreProbabilities(OfAProject):
    @torch.no_grad()
    def evaluate(self):
        if not self.faulty:
            self.model.eval()
        self.forward(DIGITS.images[:50])


class LossIsOneNumber(OfAProject):
    """The gradient of each sample's loss, and not of their mean."""

    def loss(self, output, labels):
        return F.cross_entropy(output, labels, reduction="none" if self.faulty else "mean")

    def backward(self, loss):
        torch.autograd.backward(loss, torch.ones_like(loss))


BASES = (Advised, Accelerated, Built, OfAProject, Continues, Loop)
