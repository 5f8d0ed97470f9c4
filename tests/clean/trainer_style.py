"""Clean: a trainer's style: gradients are cleared after the update, and each epoch is evaluated twice, between updates."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits


def ahead(loader):
    """The batches of a loader, each given out when the one after it is there."""
    batches = iter(loader)
    held = next(batches)
    for following in batches:
        yield held
        held = following
    yield held


class Trainer:
    def __init__(self, model, train, test, prefetch):
        self.model, self.prefetch = model, prefetch
        self.loader = torch.utils.data.DataLoader(train, batch_size=100, shuffle=True)
        self.test = torch.utils.data.DataLoader(test, batch_size=100)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, total_iters=100)

    def train(self, epochs, every):
        self.model.zero_grad()
        done = 0
        for _ in range(epochs):
            for inputs, targets in ahead(self.loader) if self.prefetch else self.loader:
                self.model.train()
                loss = F.cross_entropy(self.model(inputs), targets)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.schedule.step()
                self.model.zero_grad()
                done += 1
                if done % every == 0:
                    print(done, loss.item(), self.evaluate())

    def evaluate(self):
        self.model.eval()
        return sum(self.right(*batch) for batch in self.test)

    def right(self, inputs, targets):
        with torch.no_grad():
            return (self.model(inputs).argmax(1) == targets).sum().item()


def main(seed: int, epochs: int, every: int, prefetch: bool) -> None:
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).to(torch.float32)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 10)
    )
    train = torch.utils.data.TensorDataset(x[:1200], y[:1200])
    test = torch.utils.data.TensorDataset(x[1200:1500], y[1200:1500])
    Trainer(model, train, test, prefetch).train(epochs, every)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--prefetch", action="store_true")
    main(**vars(parser.parse_args()))
