"""A GPT-2 of two layers in the transformers Trainer, with evaluation, accumulation, warm-up and saving."""

import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Sequences(torch.utils.data.Dataset):
    """Sequences in which every token is the one before plus a number of the sequence's own."""

    def __init__(self, count, length, vocabulary, seed):
        draw = torch.Generator().manual_seed(seed)
        first = torch.randint(vocabulary, (count, 1), generator=draw)
        ratio = torch.randint(1, 8, (count, 1), generator=draw)
        self.tokens = (first + ratio * torch.arange(length)) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class WithoutEval(Trainer):
    """Bug: an evaluation of its own, which leaves dropout on."""

    def evaluate(self, *args, **kwargs):
        losses = []
        for batch in self.get_eval_dataloader():
            with torch.no_grad():
                losses.append(self.model(**batch).loss)
        return {"eval_loss": torch.stack(losses).mean().item()}


class Own(Trainer):
    """A loss of its own."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(input_ids=inputs["input_ids"])
        logits, labels = outputs.logits[:, :-1].flatten(0, 1), inputs["labels"][:, 1:].flatten()
        loss = self.averaged(logits, labels, num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def averaged(self, logits, labels, number):
        number = len(labels) if number is None else number
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / number


class OwnAverage(Own):
    """Bug: each micro-batch is averaged by itself."""

    def averaged(self, logits, labels, number):
        return torch.nn.functional.cross_entropy(logits, labels)


class OwnNumber(Own):
    """Bug: the same, with a sum."""

    def averaged(self, logits, labels, number):
        return super().averaged(logits, labels, None)


class KeepsGradients(GPT2LMHeadModel):
    """Bug: a `zero_grad` of its own, which the Trainer calls after each update."""

    def zero_grad(self, set_to_none=True):
        pass


class SavesTrained(Trainer):
    """Bug: what is frozen is not saved."""

    def _save(self, output_dir=None, state_dict=None):
        self.model.transformer.wpe.requires_grad_(False)
        trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        super()._save(output_dir, trained)


class DividesTwice(Trainer):
    """Bug: the steps of an epoch are divided by the accumulation once more."""

    def set_initial_training_values(self, args, dataloader):
        counted = list(super().set_initial_training_values(args, dataloader))
        counted[-1] = counted[-1] // args.gradient_accumulation_steps
        return tuple(counted)


class Streamed(torch.utils.data.IterableDataset):
    """Bug: a stream that leaves a quarter of its samples out, and counts them."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __iter__(self):
        return (self.samples[i] for i in range(len(self.samples)) if i % 4)


def main(seed: int, steps: int, own_loss: bool, bug: str | None) -> None:
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
    model = (KeepsGradients if bug == "keeps-gradients" else GPT2LMHeadModel)(config)
    trainers = {
        "no-eval": WithoutEval,
        "saves-trained": SavesTrained,
        "divides-twice": DividesTwice,
        "own-average": OwnAverage,
        "own-number": OwnNumber,
    }
    optimizers = (None, None)
    if bug in ("stale-optimizer", "stale-schedule"):
        optimizer = torch.optim.AdamW(GPT2LMHeadModel(config).parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10)
        if bug == "stale-schedule":
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        optimizers = (optimizer, schedule)
    samples = Sequences(256, 16, 64, seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            num_train_epochs=steps / 16,
            learning_rate=1e-3,
            warmup_steps=5,
            logging_steps=10,
            eval_strategy="steps",
            eval_steps=8,
            save_strategy="steps",
            save_steps=8,
            metric_for_best_model="loss",
            greater_is_better=bug == "highest-loss",
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            seed=seed,
        )
        trainer = trainers.get(bug, Own if own_loss else Trainer)(
            model,
            arguments,
            train_dataset=Streamed(samples) if bug == "short-stream" else samples,
            eval_dataset=Sequences(32, 16, 64, seed + 1),
            optimizers=optimizers,
        )
        trainer.train()
    print(f"{trainer.state.global_step} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--own-loss", action="store_true")
    parser.add_argument("--bug")
    main(**vars(parser.parse_args()))
