"""A transformer in Lightning, automatic optimisation with clipping, as large as asked; a line after each step."""

import argparse
import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LENGTH, BATCH, VOCABULARY = 64, 4, 512


class Model(lightning.LightningModule):
    """Predicts the next token."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, width // 32, 4 * width, 0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, VOCABULARY)

    def training_step(self, batch, index):
        (tokens,) = batch
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        mask = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1])
        logits = self.head(self.body(self.embedding(inputs), mask, is_causal=True))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.log("loss", loss)
        return loss

    def on_train_batch_end(self, outputs, batch, index):
        print(f"step {index + 1}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main(width: int, layers: int, steps: int) -> None:
    lightning.seed_everything(0, verbose=False)
    model = Model(width, layers)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    first = torch.randint(VOCABULARY, (steps * BATCH, 1))
    ratio = torch.randint(1, 8, (steps * BATCH, 1))
    tokens = (first + ratio * torch.arange(LENGTH)) % VOCABULARY
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            default_root_dir=folder,
            max_epochs=1,
            gradient_clip_val=1.0,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            logger=False,
        )
        trainer.fit(model, DataLoader(TensorDataset(tokens), BATCH, shuffle=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    main(**vars(parser.parse_args()))
