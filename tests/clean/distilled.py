"""Distillation in one process: a teacher of digits is trained, then a student learns from its answers."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

TEMPERATURE = 4.0


def network(width):
    return nn.Sequential(
        nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 10)
    )


def softened(student, teacher):
    wanted = F.softmax(teacher / TEMPERATURE, dim=1)
    given = F.log_softmax(student / TEMPERATURE, dim=1)
    return F.kl_div(given, wanted, reduction="batchmean") * TEMPERATURE**2


def main():
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)

    teacher = network(256)
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(2):
        teacher.train()
        for x, y in loader:
            loss = F.cross_entropy(teacher(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    teacher.eval().requires_grad_(False)

    student = network(32)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    for _ in range(3):
        student.train()
        for x, y in loader:
            with torch.no_grad():
                wanted = teacher(x)
            out = student(x)
            loss = 0.7 * softened(out, wanted) + 0.3 * F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        student.eval()
        with torch.no_grad():
            right = (student(images).argmax(1) == labels).float().mean()
        print(f"loss {loss.item():.3f} accuracy {right:.3f}")


main()
