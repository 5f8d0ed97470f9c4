"""Two networks against each other in Lightning: manual optimisation with two optimizers, and an average of one network."""

import argparse

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

NOISE = 16


class Adversaries(lightning.LightningModule):
    """A generator of digits and what tells them from real ones."""

    def __init__(self, bug: str | None) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.bug = bug
        self.generator = nn.Sequential(
            nn.Linear(NOISE, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh()
        )
        self.judge = nn.Sequential(
            nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1)
        )
        average = get_ema_multi_avg_fn(0.99)
        self.average = AveragedModel(self.generator, multi_avg_fn=average, use_buffers=True)

    def training_step(self, batch, index):
        (real,) = batch
        generating, judging = self.optimizers()
        made = self.generator(torch.randn(len(real), NOISE))
        loss = self.loss(self.judge(real), 1) + self.loss(self.judge(made.detach()), 0)
        if self.bug != "no-zero-grad":
            judging.zero_grad()
        self.manual_backward(loss)
        judging.step()

        self.toggle_optimizer(generating)
        judged = self.judge(self.generator(torch.randn(len(real), NOISE)))
        loss = self.loss(judged, 1)
        if self.bug != "no-zero-grad":
            generating.zero_grad()
        self.manual_backward(loss)
        generating.step()
        self.untoggle_optimizer(generating)
        self.average.update_parameters(self.generator)
        self.log("loss", loss)

    def loss(self, scores, label):
        return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))

    def validation_step(self, batch, index):
        (real,) = batch
        made = self.average(torch.randn(len(real), NOISE))
        self.log("gap", (made.mean(0) - real.mean(0)).abs().mean())

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(self.judge.parameters(), lr=1e-3, betas=(0.5, 0.999)),
        )


def main(seed: int, epochs: int, bug: str | None) -> None:
    lightning.seed_everything(seed, verbose=False)
    x = torch.tensor(load_digits().data).float() / 8 - 1
    train = DataLoader(TensorDataset(x[:1500]), 50, shuffle=True, drop_last=True)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=epochs,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
    )
    trainer.fit(Adversaries(bug), train, DataLoader(TensorDataset(x[1500:]), 100))
    print(f"gap {trainer.callback_metrics['gap']:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bug")
    main(**vars(parser.parse_args()))
