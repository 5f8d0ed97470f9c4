"""A GPT-2 in the transformers Trainer, as large as asked; a line after each step."""

import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

LENGTH, BATCH = 64, 4


class Lines(TrainerCallback):
    """Prints the number of each step."""

    def on_step_end(self, args, state, control, **given):
        print(f"step {state.global_step}", flush=True)


class Sequences(torch.utils.data.Dataset):
    """Sequences in which every token is the one before plus a number of the sequence's own."""

    def __init__(self, count, vocabulary):
        draw = torch.Generator().manual_seed(0)
        first = torch.randint(vocabulary, (count, 1), generator=draw)
        ratio = torch.randint(1, 8, (count, 1), generator=draw)
        self.tokens = (first + ratio * torch.arange(LENGTH)) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main(width: int, layers: int, steps: int) -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=512,
        n_positions=LENGTH,
        n_embd=width,
        n_layer=layers,
        n_head=width // 32,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config)
    print(f"{model.num_parameters():,} parameters", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=BATCH,
            max_steps=steps,
            learning_rate=1e-3,
            warmup_steps=5,
            save_strategy="no",
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
        )
        data = Sequences(steps * BATCH, 512)
        Trainer(model, arguments, train_dataset=data, callbacks=[Lines()]).train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    main(**vars(parser.parse_args()))
