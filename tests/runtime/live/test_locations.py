"""Each call is told with the line of the user's own code that made it, and each boundary with what ended the span."""

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tspec.runtime.edges import Location, StateSource, WatchedCall
from tspec.runtime.live import EventSpec, LiveJob, WatchSpec
from tspec.runtime.live.instrument.locations import MOST, ScriptLocations
from tspec.runtime.sources import Sources

SPEC = WatchSpec(
    (
        EventSpec("forward", ("torch.nn.Module.__call__",)),
        EventSpec("optimizer.step", ("torch.optim.Optimizer.step",)),
        EventSpec("optimizer.zero_grad", ("torch.optim.Optimizer.zero_grad",)),
        EventSpec("backward", ("torch.autograd.backward",)),
        EventSpec("matmul", ("torch.matmul",)),
        EventSpec("linear", ("torch.nn.functional.linear",)),
    )
)

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2))

    def forward(self, x):
        return self.inner(
            x)

def train(steps):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        opt.zero_grad()
        for x in torch.ones(2, 1, 2):
            net(x).sum().backward()
        opt.step(
        )
        torch.matmul(x, x.T)
"""


class Seen:
    """Keeps where things happened."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Location | None]] = []
        self.ends: list[tuple[str, int, Location | None]] = []

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        self.calls.append((call.event, call.location))

    def end(self, call: WatchedCall, source: StateSource) -> None:
        pass

    def boundary(self, span: str, index: int, source: StateSource) -> None:
        self.ends.append((span, index, source.location))

    def finish(self, source: StateSource) -> None:
        self.ends.append(("run", 0, source.location))


def module(path: Path, text: str) -> Any:
    """A script as a module, with the path of its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    made = ModuleType(path.stem)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), made.__dict__)
    return made


def trained(path: Path, text: str, sources: Sources, steps: int = 2) -> Seen:
    seen, script = Seen(), module(path, text)
    with LiveJob(SPEC, [seen], sources):
        script.train(steps)
    return seen


def lines(seen: Seen, event: str) -> set[tuple[int, str, str]]:
    return {(at.line, at.function, at.text) for name, at in seen.calls if name == event and at}


def test_a_call_is_at_the_line_that_made_it(tmp_path: Path) -> None:
    seen = trained(tmp_path / "train.py", SCRIPT, Sources(tmp_path))
    assert {at.file for _, at in seen.calls if at} == {"train.py"}
    assert all(at is not None for _, at in seen.calls)
    assert lines(seen, "backward") == {(20, "train", "net(x).sum().backward()")}
    assert lines(seen, "optimizer.step") == {(21, "train", "opt.step(")}
    assert lines(seen, "matmul") >= {(23, "train", "torch.matmul(x, x.T)")}
    # What a layer of torch calls is at the line of the user's own that called the layer.
    assert lines(seen, "linear") == {(11, "Net.forward", "return self.inner(")}


def test_a_span_ends_at_the_line_of_the_latest_update_or_backward_pass(tmp_path: Path) -> None:
    seen = trained(tmp_path / "train.py", SCRIPT, Sources(tmp_path))
    found = [(span, index, at and at.line) for span, index, at in seen.ends]
    assert found == [
        ("epoch", 1, None), ("step", 1, None), ("microbatch", 1, None), ("microbatch", 2, 20),
        ("step", 2, 21), ("microbatch", 1, 21), ("microbatch", 2, 20), ("run", 0, 21),
    ]  # fmt: skip


def test_a_file_outside_of_the_project_has_its_whole_path(tmp_path: Path) -> None:
    seen = trained(tmp_path / "train.py", SCRIPT, Sources(tmp_path / "project"))
    assert {at.file for _, at in seen.calls if at} == {(tmp_path / "train.py").as_posix()}


def test_installed_packages_are_passed_over_for_the_code_that_called_them(tmp_path: Path) -> None:
    package = module(tmp_path / "lib/site-packages/trainer.py", SCRIPT)
    script = module(tmp_path / "train.py", "def main(fit):\n    fit(1)\n")
    seen = Seen()
    with LiveJob(SPEC, [seen], Sources(tmp_path)):
        script.main(package.train)
    assert lines(seen, "optimizer.step") == {(2, "main", "fit(1)")}


def test_where_all_code_is_installed_the_package_nearest_to_torch_is_named(tmp_path: Path) -> None:
    """As where a recipe is run from its package: the frames of this test stand for those of no one."""
    package = module(tmp_path / "lib/site-packages/trainer.py", SCRIPT)
    seen = Seen()
    with LiveJob(SPEC, [seen], Sources(tmp_path)):
        installed = sys._getframe().f_code.co_filename
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "tspec.runtime.live.instrument.locations._PYTHON",
                (str(Path(installed).parent), str(Path(sys.executable).parent)),
            )
            package.train(1)
    assert lines(seen, "optimizer.step") == {(21, "train", "opt.step(")}


def test_nothing_is_told_where_paths_are_redacted(tmp_path: Path) -> None:
    seen = trained(tmp_path / "train.py", SCRIPT, Sources(tmp_path, redacted=True))
    assert {at for _, at in seen.calls} == {None} == {at for _, _, at in seen.ends}


def test_a_line_that_cannot_be_read_has_no_text(tmp_path: Path) -> None:
    scope: dict[str, Any] = {"found": ScriptLocations(Sources(tmp_path))}
    exec(compile("\nat = found.here()", str(tmp_path / "gone.py"), "exec"), scope)
    assert scope["at"] == Location("gone.py", 2, "<module>", "")


def test_what_is_known_of_code_is_bounded(tmp_path: Path) -> None:
    found = ScriptLocations(Sources(tmp_path))
    for number in range(MOST + 10):
        scope: dict[str, Any] = {"found": found}
        exec(compile(f"at = found.here()  # {number}", f"file-{number}.py", "exec"), scope)
        assert scope["at"].file.endswith(f"file-{number}.py")
    assert max(len(found._owners), len(found._lines)) <= MOST
