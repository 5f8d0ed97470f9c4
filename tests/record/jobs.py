"""Small training jobs for tests of recording: `python jobs.py NAME OUT [ranks]` writes parameters and losses."""

import sys
import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

STEPS = 50


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(functional.relu(self.norm(self.conv(x.view(-1, 1, 4, 4)))).flatten(1))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ids = (x * 4).long().clamp(-16, 15) + 16
        return self.head(self.block(self.embed(ids))).mean(1)


MODELS = {"mlp": Mlp, "cnn": Cnn, "gpt": Gpt}


def work(rank: int, name: str, out: str, ranks: int, meeting: str = "") -> None:
    torch.manual_seed(0)
    model: Any = MODELS[name]()
    if ranks > 1:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    data = torch.utils.data.TensorDataset(
        torch.randn(STEPS * 8, 16), torch.randint(0, 4, (STEPS * 8,))
    )
    losses = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    state = {key: value.clone() for key, value in model.state_dict().items()}
    torch.save((state, torch.stack(losses), torch.get_rng_state()), f"{out}.{rank}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    name, out = sys.argv[1:3]
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    method = sys.argv[4] if len(sys.argv) > 4 else "spawn"
    if ranks > 1:
        with tempfile.TemporaryDirectory() as folder:
            arguments = (name, out, ranks, f"file://{folder}/meeting")
            mp.start_processes(work, arguments, ranks, start_method=method)
    else:
        work(0, name, out, 1)
