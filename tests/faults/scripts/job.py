"""An ordinary job that never clears its gradients: `python job.py STEPS`. It says each step when it is over."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(1, int(sys.argv[1]) + 1):
    x = torch.randn(16, 8)
    loss = nn.functional.cross_entropy(model(x), x.argmax(1) % 3)
    loss.backward()
    optimizer.step()
    print(step, flush=True)
print("loss", loss.item(), flush=True)
