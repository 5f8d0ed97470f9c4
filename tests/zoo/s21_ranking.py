"""Items are ranked for users: pairs of what a user took and what not, rare items drawn more often."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

USERS, ITEMS, FACTORS = 60, 80, 8


class Taken(Dataset):
    """A user, an item that the user took, and one drawn at random."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, place: int) -> tuple[int, int, int]:
        user, item = self.pairs[place]
        return user, item, int(torch.randint(ITEMS, ()))


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, FACTORS), nn.Embedding(ITEMS, FACTORS)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return (self.users(user) * self.items(item)).sum(-1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["weights-of-items"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    liked = (torch.randn(USERS, 3) @ torch.randn(3, ITEMS)).topk(10, 1).indices
    pairs = [(user, int(item)) for user in range(USERS) for item in liked[user]]
    weights = 1 / liked.flatten().bincount(minlength=ITEMS).clamp(min=1).sqrt()
    if args.bug != "weights-of-items":
        weights = weights[[item for _, item in pairs]]
    sampler = WeightedRandomSampler(weights, len(pairs))
    loader = DataLoader(Taken(pairs), batch_size=50, sampler=sampler)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(args.epochs):
        for user, item, other in loader:
            loss = -F.logsigmoid(model(user, item) - model(user, other)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
