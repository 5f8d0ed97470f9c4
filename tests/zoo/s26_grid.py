"""Deep Q-learning on a small grid: an agent looks for the goal, and each move costs a little."""

import argparse

import torch
from torch import nn

SIDE, DISCOUNT = 5, 0.9
MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * SIDE, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.net(nn.functional.one_hot(places, SIDE).flatten(1).float())


def move(places: torch.Tensor, moves: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    after = (places + MOVES[moves]).clamp(0, SIDE - 1)
    return after, (after == SIDE - 1).all(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--bug", choices=["moving-target"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    criterion = nn.SmoothL1Loss()
    places = torch.randint(SIDE - 1, (32, 2))
    for step in range(1, args.steps + 1):
        values = agent(places)
        explores = torch.rand(len(places)) < max(0.1, 1 - step / 80)
        moves = torch.where(explores, torch.randint(4, (len(places),)), values.argmax(1))
        after, arrived = move(places, moves)
        with torch.set_grad_enabled(args.bug == "moving-target"):
            best = agent(after).max(dim=1)[0]
            target = arrived.float() - 0.01 + DISCOUNT * best * ~arrived
        loss = criterion(values.gather(1, moves.unsqueeze(1)).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        places = torch.where(arrived[:, None], torch.randint(SIDE - 1, (32, 2)), after)
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f} arrived {arrived.float().mean():.2f}")


if __name__ == "__main__":
    main()
