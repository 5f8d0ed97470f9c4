"""Stochastic weight averaging over streams from workers that stay, with early stopping."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(0)
d = load_digits()
x = torch.tensor(d.data, dtype=torch.float32) / 16
y = torch.tensor(d.target)


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        k, n = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(k, 640, n):
            yield x[i], y[i]


def main():
    m = nn.Sequential(
        nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)
    )
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)
    avg = AveragedModel(m)
    s = SWALR(o, swa_lr=0.02, anneal_epochs=1)
    ms = torch.optim.lr_scheduler.MultiStepLR(o, [1])
    dl = DataLoader(Stream(), batch_size=64, num_workers=2, persistent_workers=True)
    best = 0
    bad = 0
    vl = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=99)
    for ep in range(4):
        m.train()
        for a, b in dl:
            loss = nn.functional.cross_entropy(m(a), b, label_smoothing=0.1)
            o.zero_grad()
            loss.backward()
            o.step()
        if ep >= 2:
            avg.update_parameters(m)
            s.step()
        else:
            ms.step()
        m.eval()
        with torch.no_grad():
            acc = sum((m(a).argmax(1) == b).sum().item() for a, b in vl) / 297
        if acc > best:
            best, bad, keep = acc, 0, copy.deepcopy(m.state_dict())
        else:
            bad += 1
            if bad > 2:
                break
    update_bn(dl, avg)
    m.load_state_dict(keep)
    avg.eval()
    print(best)


if __name__ == "__main__":
    main()
