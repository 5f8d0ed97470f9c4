"""An ordinary job that says each step when it is over, and trains until somebody ends it."""

import sys
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(1, 100_000):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x.argmax(1) % 3)
    loss.backward()
    if step == int(sys.argv[1]):
        print("halfway", flush=True)
        time.sleep(600)
    optimizer.step()
    print(step, flush=True)
