"""The kernels that read tensors on a GPU, without one: Triton interprets them, and compiles them for several GPUs.

`tests/gpu` runs them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tspec.runtime.live import digest
from tspec.runtime.live.cuda import reads

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="tests/gpu has the same on a GPU")


@pytest.mark.slow
def test_kernels_agree_with_torch() -> None:
    """In a process of its own: Triton decides when it is imported whether it interprets."""
    tests = Path(__file__).with_name("interpreted_kernels.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_a_device_for_which_nothing_compiles_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    device = torch.device("cuda", 7)
    assert not reads.reads(device, torch.complex64)  # read by torch in any case
    assert capsys.readouterr().err == ""
    assert not reads.reads(device, torch.float32)
    assert not reads.reads(device, torch.bfloat16)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("tspec: Triton cannot compile here, so tensors on the GPU are read one")


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_kernels_compile(architecture: int) -> None:
    from triton import compile as compiled_for
    from triton import language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tspec.runtime.live.cuda import kernels

    numbers = {
        "CHUNK": reads.CHUNK, "BLOCK": reads.BLOCK, "COLUMNS": len(reads.Statistics._fields),
        "ROWS": reads.ROWS, "LANES": reads.LANES, "NARROW": digest.WIDTHS[0], "WIDE": digest.WIDTHS[1],
        **dict(zip(("STEP", "FIRST", "SECOND"), digest.MIXING, strict=True)),
    }  # fmt: skip
    floats = {"means", "partial"}

    def check(kernel: object, found: str = "*i64", **given: object) -> None:
        names = kernel.arg_names  # type: ignore[attr-defined]
        fixed = {name: given.get(name, numbers.get(name)) for name in names if name.isupper()}
        signature = {name: "*fp64" if name in floats else "*i64" for name in names}
        signature |= dict.fromkeys(fixed, "constexpr")
        if "found" in signature:
            signature["found"] = found
        made = compiled_for(
            ASTSource(kernel, signature, fixed), target=GPUTarget("cuda", architecture, 32)
        )
        assert "ptx" in made.asm

    for name in sorted({*reads.KINDS.values()}):
        for centred in (False, True):
            check(kernels.chunk_statistics, KIND=getattr(tl, name), CENTRED=centred)
    check(kernels.tensor_statistics, "*fp64")
    check(kernels.column_sums)
    check(kernels.mixed_words)
