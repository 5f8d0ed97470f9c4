"""Two gloo ranks that average gradients by hand, and train the last layer from step 11 on: its rate is 0 until then.

`gradual_job.py [FAULT]`. Faults: `unaveraged` (gradients of what has a rate of 0 are not averaged), `own_moments` (after
step 6 one rank goes on with empty moments of the last layer), `clamped` (one rank clamps its weights after each update),
`same_data` (all ranks train on the batches of the first), `clipped_first` (each rank clips before ranks average), `alone`
(ranks draw their own weights, and nothing is averaged), `apart` (nothing is averaged but a metric, for which ranks gather
their answers, and all layers train from the first step), `own_weights` (ranks draw their own weights), `left_out` (the
gradients of the first layer are not averaged), `norms` (it begins with a norm, whose gradients
are not averaged).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS, UNFROZEN, RESUMED = 12, 11, 6
RATE = 1e-2


def work(rank: int, meeting: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(rank if fault in ("alone", "own_weights") else 0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    if fault == "norms":
        model[0] = nn.Sequential(nn.LayerNorm(8), model[0])
    optimizer = make_optimizer(model)
    for step in range(1, STEPS + 1):
        if step == (1 if fault == "apart" else UNFROZEN):
            optimizer.param_groups[1]["lr"] = RATE
        optimizer.zero_grad()
        inputs, labels = batch(step, 0 if fault == "same_data" else rank)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        if fault == "clipped_first":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if fault not in ("alone", "apart"):
            average(optimizer, fault, [*model[0][0].parameters()] if fault == "norms" else [])
        if fault != "clipped_first":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if fault == "apart":
            gather_answers(model(inputs).argmax(1))
        if fault == "clamped" and rank == 1:
            model[0].weight.data.clamp_(-0.2, 0.2)
        if step == RESUMED:
            state = optimizer.state_dict()
            if fault == "own_moments" and rank == 1:
                for index in state["param_groups"][1]["params"]:
                    state["state"][index]["exp_avg"].zero_()
            optimizer = make_optimizer(model)
            optimizer.load_state_dict(state)
    dist.destroy_process_group()


def make_optimizer(model: nn.Sequential) -> torch.optim.Optimizer:
    body, head = model[0].parameters(), model[2].parameters()
    return torch.optim.Adam([{"params": body}, {"params": head, "lr": 0.0}], lr=RATE)


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(10 * step + rank)
    inputs = torch.randn(32, 8, generator=drawn)
    return inputs, inputs[:, :4].argmax(1)


def gather_answers(answers: torch.Tensor) -> None:
    dist.all_gather([torch.empty_like(answers) for _ in range(2)], answers)


def average(optimizer: torch.optim.Optimizer, fault: str, own: list[nn.Parameter]) -> None:
    for group in optimizer.param_groups:
        if fault == "unaveraged" and group["lr"] == 0:
            continue
        if fault == "left_out" and group["lr"] != 0:
            continue
        for parameter in group["params"]:
            if all(parameter is not each for each in own):
                dist.all_reduce(parameter.grad)
                parameter.grad /= 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work,
            (f"file://{folder}/meeting", (*sys.argv[1:], "")[0]),
            nprocs=2,
            start_method="fork",
        )
