"""TrainCheck B11, TF-34204 (Pixtral): the processor gives back the first item of what it is given.

It pairs every text with an image; the pairing stops after one. Training goes on with batches of
one sample and sees a sixteenth of the data.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


class Processor:
    """Texts and images to tensors, padded to one length."""

    def __init__(self, bug):
        self.bug = bug

    def __call__(self, text, images):
        length = max(len(t) for t in text)
        rows, pictures = [], []
        for words, image in zip(text, images, strict=True):
            rows.append([ord(c) - 96 for c in words] + [0] * (length - len(words)))
            pictures.append(torch.as_tensor(image, dtype=torch.float32).flatten() / 16)
            if self.bug == "first-only":
                break
        return {"input_ids": torch.tensor(rows), "pixel_values": torch.stack(pictures)}


class Matcher(nn.Module):
    """Does the word name the digit on the picture?"""

    def __init__(self):
        super().__init__()
        self.letters = nn.EmbeddingBag(27, 32, padding_idx=0)
        self.pixels = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32))
        self.out = nn.Linear(32, 1)

    def forward(self, input_ids, pixel_values):
        return self.out(self.letters(input_ids) * self.pixels(pixel_values)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--bug", choices=["first-only"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits, processor, model = load_digits(), Processor(args.bug), Matcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(digits.target), (32,)).tolist()
        right = digits.target[rows]
        shown = torch.where(torch.rand(32) < 0.5, torch.tensor(right), torch.randint(10, (32,)))
        inputs = processor([NAMES[i] for i in shown], digits.images[rows])
        wanted = (shown == torch.tensor(right)).float()[: len(inputs["input_ids"])]
        loss = nn.functional.binary_cross_entropy_with_logits(model(**inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
