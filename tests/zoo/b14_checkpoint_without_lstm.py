"""TrainCheck B14, TF-29903: a safe way to save loses weights of the LSTM.

To write each storage once, the saver drops every tensor that shares its size with one that it has
already written, instead of every tensor that shares its memory. TrainCheck misses this one.
"""

import argparse
import os
import tempfile
from pydoc_data.topics import topics

import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, 16)
        self.lstm = nn.LSTM(16, 32, num_layers=2, batch_first=True)
        self.out = nn.Linear(32, characters)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embed(ids))[0])


def safe_checkpoint(model: nn.Module, path: str, bug: str | None) -> None:
    kept, seen = {}, set()
    for name, tensor in model.state_dict().items():
        mark = tensor.shape if bug else tensor.untyped_storage().data_ptr()
        if mark not in seen:
            seen.add(mark)
            kept[name] = tensor
    torch.save(kept, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["lost-weights"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = topics["lambda"] + topics["yield"]
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(c) for c in text])
    model = Speaker(len(alphabet))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speaker.pt")
        for step in range(1, args.steps + 1):
            starts = torch.randint(len(ids) - 25, (16,))
            windows = torch.stack([ids[s : s + 25] for s in starts])
            optimizer.zero_grad()
            scores = model(windows[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                safe_checkpoint(model, path, args.bug)
                print(f"step {step}: loss {loss.item():.3f}, {len(torch.load(path))} saved")


if __name__ == "__main__":
    main()
