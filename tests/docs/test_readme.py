"""What the README's first example prints is what the command prints, but for lines left out (`...`)."""

import os
import re
from pathlib import Path

from tests import warm

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"^```console\n\$ (tspec run [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_first_example_prints_what_it_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = EXAMPLE.search(readme)
    assert found is not None
    command, expected = found.groups()
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    done = warm.run(*command.split()[1:], env=env)
    assert done.returncode == 0, done.stderr
    said = comparable(done.stdout)
    for part in filter(None, re.split(r"^\s*\.\.\.\n", expected, flags=re.MULTILINE)):
        assert comparable(part) in said
        said = said.partition(comparable(part))[2]


def comparable(text: str) -> str:
    """Without what moves: lines at which shipped rules and the script stand, and digits of the loss."""
    text = re.sub(r"(?<=\.tspec):\d+|(?<=\.py):\d+|^ *\d+(?= \|)", "", text, flags=re.MULTILINE)
    return re.sub(r"loss [\d.]+  test accuracy [\d.]+", "loss", text)
