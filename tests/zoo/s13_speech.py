"""Words are recognised in a series of frames, with a loss over all alignments, and how long they are is guessed."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

BLANK, LETTERS, WIDTH = 0, 8, 12


def words(
    count: int, patterns: torch.Tensor, draws: torch.Generator
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Series of frames, each letter three of them, and their letters."""
    spoken, written = [], []
    for _ in range(count):
        length = int(torch.randint(2, 6, (), generator=draws))
        letters = torch.randint(1, LETTERS + 1, (length,), generator=draws)
        frames = patterns[letters].repeat_interleave(3, 0)
        spoken.append(frames + 0.1 * torch.randn(frames.shape, generator=draws))
        written.append(letters)
    return spoken, written


class Recogniser(nn.Module):
    """Scores of letters for each frame, and the length of the word."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = nn.GRU(WIDTH, 32, batch_first=True, bidirectional=True)
        self.letters, self.length = nn.Linear(64, LETTERS + 1), nn.Linear(64, 1)

    def forward(self, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of `[n, time, width]` scores `[n, time, letters + 1]` and lengths `[n, 1]`."""
        states, _ = self.reads(frames)
        return self.letters(states), self.length(states.mean(1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--bug", choices=["scores", "over-time", "padded-lengths", "stretched"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    draws = torch.Generator().manual_seed(args.seed)
    patterns = torch.randn(LETTERS + 1, WIDTH)
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        spoken, written = words(16, patterns, draws)
        frames = torch.tensor([len(each) for each in spoken])
        lengths = torch.tensor([len(each) for each in written])
        targets = pad_sequence(written, batch_first=True, padding_value=BLANK)
        scores, guess = model(pad_sequence(spoken, batch_first=True))
        given = (
            scores
            if args.bug == "scores"
            else scores.log_softmax(1 if args.bug == "over-time" else 2)
        )
        known = (
            torch.full_like(lengths, targets.shape[1]) if args.bug == "padded-lengths" else lengths
        )
        loss = F.ctc_loss(
            given.transpose(0, 1), targets, frames, known, blank=BLANK, zero_infinity=True
        )
        error = (guess if args.bug == "stretched" else guess.squeeze(1)) - lengths
        loss = loss + 0.1 * error.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
