"""How long `tspec fmt` takes for ten thousand lines, read and written. Aim: under 2 s."""

import tempfile
import time
from pathlib import Path

from measure import ROOT, TSPEC, Command, in_turn, median

from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

LINES = 10_000
ROUNDS = 3


def long_spec() -> str:
    """The rules of the standard library, as often as it takes to have ten thousand lines."""
    texts = [path.read_text() for path in sorted((ROOT / "stdlib").glob("*.tspec"))]
    bodies = "".join(text[text.index("\ninvariant") :] for text in texts if "\ninvariant" in text)
    copies = LINES // bodies.count("\n") + 1
    return "edition 2026\n\nmodule long\n" + bodies * copies


def main() -> None:
    """Print the times of the command and of its two parts."""
    text = long_spec()
    began = time.perf_counter()
    parsed = parse(Source("long.tspec", text))
    read = time.perf_counter()
    format_file(parsed.file)
    done = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.tspec"
        path.write_text(text)
        commands = {"fmt": Command([*TSPEC, "fmt", "--check", str(path)], statuses=(0, 1))}
        whole = median(in_turn(commands, ROUNDS)["fmt"])
    print(f"  tspec fmt --check, {text.count(chr(10))} lines: {whole:.2f} s")
    print(f"  reading {read - began:.2f} s, writing {done - read:.2f} s")


if __name__ == "__main__":
    main()
