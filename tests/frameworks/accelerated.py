"""A classifier under Accelerate, with accumulation, clipping, a schedule, saving and validation between epochs."""

import argparse
import tempfile

import torch
from accelerate import Accelerator, debug_launcher
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size):
    """Loaders of 1,200 digits to train with and 400 to validate with, pixels from 0 to 1."""
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    train, held_out = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:1600], y[1200:1600])
    return DataLoader(train, batch_size, shuffle=True), DataLoader(held_out, batch_size)


def validate(model, loader, accelerator):
    """The share of digits that are classified right."""
    right = []
    with torch.no_grad():
        for x, y in loader:
            guesses, targets = accelerator.gather_for_metrics((model(x).argmax(1), y))
            right.append((guesses == targets).float())
    return torch.cat(right).mean().item()


def main(seed: int, epochs: int, bug: str | None, folder: str) -> None:
    torch.manual_seed(seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    if bug == "late-head":
        model[3] = nn.Linear(64, 10)
    # Accelerate steps it once for each process after an update, of which each process makes its part.
    steps = epochs * 15 // (accelerator.num_processes if bug == "short-schedule" else 1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    train, held_out = loaders(40)
    bare = optimizer
    if bug == "loads-early":
        accelerator.save_state(folder)
        accelerator.load_state(folder)
    model, optimizer, train, held_out, schedule = accelerator.prepare(
        model, optimizer, train, held_out, schedule
    )
    if bug == "not-prepared":
        optimizer = bare
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                if bug == "own-backward":
                    loss.backward()
                elif bug == "divides-itself":
                    (loss / accelerator.gradient_accumulation_steps).backward()
                else:
                    accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                if bug == "clears-each-micro-batch":
                    model.zero_grad()
                elif bug != "no-zero-grad":
                    optimizer.zero_grad()
        if bug != "no-eval":
            model.eval()
        accelerator.print(epoch, loss.item(), validate(model, held_out, accelerator))
    accelerator.save_state(folder)
    accelerator.load_state(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", help="divides-itself is sound")
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = (args.seed, args.epochs, args.bug, folder)
        if args.processes > 1:
            debug_launcher(main, given, args.processes)
        else:
            main(*given)
