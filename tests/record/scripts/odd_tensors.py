"""A training job that holds tensors of which little or nothing can be read."""

import torch
from torch import nn


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4, sparse=True)
        self.head = nn.Linear(4, 2)
        self.register_buffer("bits", torch.zeros(4, dtype=torch.uint8).view(torch.bits8))
        self.register_buffer("eight", torch.randn(4).to(torch.float8_e4m3fn))
        self.register_buffer("ids", torch.tensor([1, 2, 3, 4], dtype=torch.uint16))
        self.register_buffer("nowhere", torch.empty(3, device="meta"))
        self.register_buffer(
            "coarse", torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)
        )
        self.register_buffer("rows", torch.eye(3).to_sparse_csr())
        self.register_buffer("turned", torch.randn(3, dtype=torch.complex64).conj())
        self.register_buffer("gone", torch.randn(1000))
        self.gone.untyped_storage().resize_(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(x).mean(1))


torch.manual_seed(0)
model = Odd()
optimizers = [
    torch.optim.SparseAdam(model.table.parameters(), 1e-2),
    torch.optim.SGD(model.head.parameters(), 1e-2),
]
for _ in range(4):
    for optimizer in optimizers:
        optimizer.zero_grad()
    model(torch.randint(10, (3, 5))).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
print("trained")
