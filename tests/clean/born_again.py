"""A student learns from labels and from the student before it, which keeps the gradients of its own last update."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

GENERATIONS, EPOCHS, BATCH = 3, 6, 60

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


teacher = None
for generation in range(GENERATIONS):
    student = network()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            logits = student(images[chosen])
            loss = functional.cross_entropy(logits, labels[chosen])
            if teacher is not None:
                with torch.no_grad():
                    taught = teacher(images[chosen]).softmax(1)
                loss = 0.5 * loss + 0.5 * functional.cross_entropy(logits, taught)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    teacher = student
    print(f"generation {generation}: loss {loss.item():.3f}")
