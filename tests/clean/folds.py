"""Cross-validation: one model after another in one process.

`--keep` holds on to those that are trained. `--norm` trains five with a batch norm, and measures each before it is trained too.
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--keep", action="store_true")
parser.add_argument("--norm", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
data = TensorDataset(images, torch.tensor(digits.target))
kept = []


def accuracy(model, test):
    model.eval()
    with torch.no_grad():
        right = sum((model(b).argmax(1) == y).sum() for b, y in DataLoader(Subset(data, test), 99))
    return right / len(test)


folds = KFold(5 if args.norm else 3, shuffle=True, random_state=0)
for fold, (train, test) in enumerate(folds.split(images)):
    between = nn.BatchNorm1d(32) if args.norm else nn.Dropout(0.1)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), between, nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    if args.norm:
        print(f"fold {fold}  untrained  accuracy {accuracy(model, test):.3f}")
    loader = DataLoader(Subset(data, train.tolist()), batch_size=64, shuffle=True)
    for _ in range(2):
        model.train()
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), labels)
            loss.backward()
            optimizer.step()
    print(f"fold {fold}  loss {loss.item():.3f}  accuracy {accuracy(model, test):.3f}")
    if args.keep:
        kept.append(model)
