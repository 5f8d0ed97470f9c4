"""Clean: a body from a file under a new head, a scaler with clipping, and the best state, to which it goes back.

`--limit scaled` clips before gradients are unscaled, at a limit that is multiplied with the scale.
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--limit", choices=["plain", "scaled"], default="plain")
args = parser.parse_args()
torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
TRAIN, TEST = slice(0, 1400), slice(1400, None)


def network(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, classes))


model = network(10)
saved = {key: value for key, value in network(4).state_dict().items() if not key.startswith("3.")}
model.load_state_dict({**model.state_dict(), **saved})
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
best, kept = 0.0, {}
for epoch in range(3):
    model.train()
    for chosen in torch.randperm(1400).split(100):
        loss = F.cross_entropy(model(images[TRAIN][chosen]), labels[TRAIN][chosen])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if args.limit == "plain":
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.no_grad():
        right = (model(images[TEST]).argmax(1) == labels[TEST]).float().mean().item()
    if right > best:
        best, kept = right, {key: value.clone() for key, value in model.state_dict().items()}
    print(epoch, loss.item(), right)
model.load_state_dict(kept)
