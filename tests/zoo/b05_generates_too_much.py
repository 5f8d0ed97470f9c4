"""TrainCheck B5, TF-23723: the limit of a generation is counted before the prompt is cut.

A prompt longer than the model's context is truncated, but the length at which to stop was
computed from the whole prompt, so more new tokens come out than were asked for.
"""

import argparse
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import nn

CONTEXT = 24


class LanguageModel(nn.Module):
    def __init__(self, characters: int, bug: str | None) -> None:
        super().__init__()
        self.bug = bug
        self.embed = nn.Embedding(characters, 16)
        self.mix = nn.Conv1d(16, 48, 5)
        self.out = nn.Linear(48, characters)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.pad(self.embed(ids).transpose(1, 2), (4, 0))
        return self.out(F.gelu(self.mix(x)).transpose(1, 2))

    @torch.no_grad()
    def generate(self, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        """The new tokens, without the prompt."""
        stop = input_ids.shape[1] + max_new_tokens
        ids = input_ids[:, -CONTEXT:]
        if not self.bug:
            stop = ids.shape[1] + max_new_tokens
        prompt = ids.shape[1]
        while ids.shape[1] < stop:
            following = self(ids[:, -CONTEXT:])[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, following], dim=1)
        return ids[:, prompt:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["limit-before-cut"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = topics["assert"] + topics["break"] + topics["class"]
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(c) for c in text])
    model = LanguageModel(len(alphabet), args.bug)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(1, args.steps + 1):
        windows = ids.unfold(0, CONTEXT + 1, 1)
        chosen = windows[torch.randint(len(windows), (16,))]
        loss = F.cross_entropy(model(chosen[:, :-1]).flatten(0, 1), chosen[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            model.eval()
            prompt = ids[None, : CONTEXT + 12]
            new = model.generate(prompt, max_new_tokens=20)
            model.train()
            words = "".join(alphabet[i] for i in new[0])
            print(f"step {step}: loss {loss.item():.3f}, {new.shape[1]} new: {words!r}")


if __name__ == "__main__":
    main()
