"""What ordinary scripts do with torch and Python besides training; each part prints what it came to."""

import atexit
import copy
import functools
import inspect
import io
import os
import pickle
import sys
import threading

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

PARTS = []


def part(function):
    PARTS.append(function)
    return function


dropped = functools.partial(F.dropout, p=0.2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.two(dropped(F.relu(self.one(x)), training=self.training))


def trained(model, steps=2, make=torch.optim.Adam):
    optimizer = make(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward()
        optimizer.step()
    return f"{loss.item():.6f}"


@part
def compiled():
    return trained(torch.compile(Net(), backend="eager"))


@part
def compiled_step():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def loss_of(x):
        return model(x).square().mean()

    loss = loss_of(torch.randn(3, 4))
    loss.backward()
    optimizer.step()
    return f"{loss.item():.6f}"


@part
def scripted_and_traced():
    layers = nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.MaxPool2d(1)
    model = nn.Sequential(*layers, nn.Flatten(), nn.LayerNorm(3), nn.Linear(3, 2), nn.GELU()).eval()
    x = torch.randn(3, 4)
    outputs = torch.jit.script(model)(x), torch.jit.trace(model, x)(x)
    return torch.equal(*outputs)


@part
def symbolically_traced():
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
    return [node.op for node in graph.graph.nodes], trained(graph)


@part
def exported():
    program = torch.export.export(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (torch.randn(3, 4),))
    return [node.op for node in program.graph.nodes]


@part
def functional_gradients():
    model = Net().eval()
    weights = dict(model.named_parameters())

    def loss(weights, x):
        scores = torch.func.functional_call(model, weights, (x,))
        return F.cross_entropy(scores, torch.tensor(1))

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, torch.randn(3, 4))
    return {name: tuple(grad.shape) for name, grad in each.items()}


@part
def recomputed():
    model = Net()
    loss = checkpoint(model, torch.randn(3, 4), use_reentrant=False).sum()
    loss += checkpoint(model, torch.randn(3, 4, requires_grad=True), use_reentrant=True).sum()
    loss.backward()
    return f"{loss.item():.6f}"


@part
def second_derivatives():
    x = torch.randn(3, requires_grad=True)
    (slope,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    slope.sum().backward()
    return torch.equal(x.grad, 6 * x.detach())


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


@part
def own_function():
    x = torch.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    return x.grad.tolist()


@part
def copied_and_pickled():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    both = copy.deepcopy((model, optimizer))
    again = pickle.loads(pickle.dumps(both))
    held = io.BytesIO()
    torch.save({"model": again[0], "optimizer": again[1].state_dict()}, held)
    held.seek(0)
    loaded = torch.load(held, weights_only=False)
    same = [
        torch.equal(a, b)
        for a, b in zip(model.parameters(), loaded["model"].parameters(), strict=True)
    ]
    return same, pickle.loads(pickle.dumps(F.dropout)) is F.dropout


@part
def sparse_gradients():
    table = nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(list(table.parameters()), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        table(torch.tensor([1, 2, 2])).sum().backward()
        optimizer.step()
    return f"{table.weight.sum().item():.6f}"


@part
def other_numbers():
    halves = nn.Linear(4, 2).to(torch.bfloat16)
    halves(torch.randn(3, 4, dtype=torch.bfloat16)).sum().backward()
    turns = nn.Linear(4, 2, dtype=torch.complex64)
    turns(torch.randn(3, 4, dtype=torch.complex64)).abs().sum().backward()
    return halves.weight.grad.dtype, turns.weight.grad.dtype


@part
def on_no_device():
    with torch.device("meta"):
        model = Net()
    shape = tuple(model(torch.empty(3, 4, device="meta")).shape)
    return shape, trained(model.to_empty(device="cpu").apply(reset))


def reset(module):
    if isinstance(module, nn.Linear):
        module.reset_parameters()


@part
def of_many_lengths():
    ragged = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged)
    return [tuple(part.shape) for part in nn.Linear(4, 2)(ragged).unbind()]


@part
def lazily_built():
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))
    model(torch.randn(2, 4))
    return trained(model)


@part
def parametrized():
    model = Net()
    nn.utils.parametrizations.weight_norm(model.one)
    nn.utils.parametrizations.spectral_norm(model.two)
    return trained(model)


@part
def averaged():
    model = Net()
    mean = torch.optim.swa_utils.AveragedModel(model)
    done = trained(model)
    mean.update_parameters(model)
    return done, int(mean.n_averaged)


@part
def many_optimizers():
    classes = ("Adadelta", "Adagrad", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "SGD")
    return [trained(Net(), make=getattr(torch.optim, name)) for name in classes]


@part
def schedules():
    optimizer = torch.optim.SGD(Net().parameters(), lr=1.0)
    kinds = torch.optim.lr_scheduler
    both = kinds.SequentialLR(
        optimizer,
        [kinds.LinearLR(optimizer, 0.1, total_iters=2), kinds.ExponentialLR(optimizer, 0.9)],
        [2],
    )
    plateau = kinds.ReduceLROnPlateau(optimizer, patience=0)
    rates = []
    for _ in range(4):
        optimizer.step()
        both.step()
        plateau.step(1.0)
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
    return rates


@part
def on_threads():
    results = {}

    def work(name):
        model = nn.Linear(4, 2)
        model(torch.ones(1, 4)).sum().backward()
        results[name] = tuple(model.weight.grad.shape)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results.items())


@part
def infinite_and_odd_loaders():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield {"x": torch.ones(2), "name": "a", "none": numpy.float32(1)}

    seen = []
    for batch in torch.utils.data.DataLoader(Endless(), batch_size=2):
        seen.append({key: type(value).__name__ for key, value in batch.items()})
        if len(seen) == 2:
            break
    plain = torch.utils.data.DataLoader(range(3), batch_size=None, collate_fn=lambda item: item)
    return seen[-1], list(plain)


@part
def errors_pass():
    try:
        nn.Linear(4, 2)(torch.ones(3, 3))
    except RuntimeError as error:
        said = str(error)
    try:
        F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 7]))
    except IndexError as error:
        return said, str(error)


@part
def looked_at():
    signature = str(inspect.signature(F.dropout))
    return signature, F.linear.__name__, inspect.getsource(Net).splitlines()[0]


@part
def hooks_of_the_user():
    calls = []
    model = Net()
    model.register_forward_hook(lambda *_: calls.append("forward"))
    model.register_full_backward_hook(lambda *_: calls.append("backward"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    return calls


@part
def modes():
    with torch.inference_mode():
        first = Net()(torch.ones(1, 4)).requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        second = nn.Linear(4, 2)(torch.ones(1, 4)).dtype
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        return first, second, trained(Net())


@part
def itself():
    import __main__

    return (
        sys.argv[1:], os.path.basename(sys.argv[0]), os.path.basename(__file__), __name__,
        __main__.Net is Net, os.path.basename(sys.path[0]), Net.__module__,
    )  # fmt: skip


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for function in PARTS:
        try:
            said = function()
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(f"{function.__name__}: {said}", flush=True)
    print("random:", torch.rand(1).item(), numpy.random.rand())


if __name__ == "__main__":
    numpy.random.seed(0)
    atexit.register(print, "the end")
    main()
