"""A classifier in Lightning with torchmetrics: automatic optimisation, clipping, validation within epochs, checkpoints."""

import argparse
import tempfile

import lightning
import torch
import torchmetrics
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    """Two layers with dropout; with `manual`, its training step makes the updates itself."""

    def __init__(self, manual: bool, bug: str | None) -> None:
        super().__init__()
        self.automatic_optimization = not manual
        self.bug = bug
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, 10)
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=10)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            if self.bug != "no-zero-grad":
                optimizer.zero_grad()
            self.manual_backward(loss)
            self.clip_gradients(optimizer, 1.0, "norm")
            optimizer.step()
            self.lr_schedulers().step()
        return loss

    def on_train_batch_end(self, outputs, batch, index):
        if self.bug == "clips-late" and index % 2:
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)

    def on_validation_model_eval(self):
        if self.bug != "no-eval":
            super().on_validation_model_eval()

    def validation_step(self, batch, index):
        x, y = batch
        self.accuracy.update(self(x), y)
        self.log("accuracy", self.accuracy)

    def configure_optimizers(self):
        held = self.body if self.bug == "head-left-out" else self
        optimizer = torch.optim.AdamW(held.parameters(), lr=3e-3)
        if self.bug == "stale-schedule":
            other = torch.optim.AdamW(held.parameters(), lr=3e-3)
            schedule = torch.optim.lr_scheduler.LinearLR(other, total_iters=20)
        else:
            schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def main(seed: int, epochs: int, manual: bool, bug: str | None) -> None:
    lightning.seed_everything(seed, verbose=False)
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    train = DataLoader(TensorDataset(x[:1200], y[:1200]), 40, shuffle=True)
    held_out = DataLoader(TensorDataset(x[1200:1600], y[1200:1600]), 40)
    with tempfile.TemporaryDirectory() as folder:
        better = "min" if bug == "keeps-the-worst" else "max"
        best = ModelCheckpoint(folder, monitor="accuracy", mode=better)
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            default_root_dir=folder,
            max_epochs=epochs,
            val_check_interval=0.5,
            accumulate_grad_batches=1 if manual else 2,
            gradient_clip_val=None if manual or bug == "clips-late" else 1.0,
            callbacks=[best],
            enable_progress_bar=False,
            enable_model_summary=False,
            logger=False,
        )
        trainer.fit(Classifier(manual, bug), train, held_out)
    print(f"{trainer.global_step} steps, accuracy {trainer.callback_metrics['accuracy']:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--manual", action="store_true")
    parser.add_argument("--bug")
    main(**vars(parser.parse_args()))
