"""Processes meet in a folder of which nobody else can write a file; what others could have made is refused."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.run.jobs import CLEARED, PATIENCE, done, environment, job, tspec_run
from tspec.run.folder import REPORTED, joined, joins, stopped_before
from tspec.runtime.messages.folders import argument_file, own_folder, write_json
from tspec.runtime.messages.launch import Launch


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_it_is_the_users_alone(cache: Path) -> None:
    before = os.umask(0)
    try:
        folder = own_folder("run")
    finally:
        os.umask(before)
    assert folder == cache / "tspec" / "run"
    assert mode(folder) == mode(cache / "tspec") == 0o700
    assert own_folder("run") == folder


def test_what_others_may_write_to_is_refused(cache: Path) -> None:
    (cache / "tspec").mkdir()
    (cache / "tspec").chmod(0o755)
    with pytest.raises(
        PermissionError, match=r"is open to other users \(mode 0755\): tspec runs code"
    ):
        own_folder()


def test_a_link_is_refused(cache: Path) -> None:
    (cache / "elsewhere").mkdir(mode=0o700)
    (cache / "tspec").symlink_to(cache / "elsewhere")
    with pytest.raises(PermissionError, match="is a symbolic link"):
        own_folder()


def test_a_file_is_refused(cache: Path) -> None:
    (cache / "tspec").touch(0o600)
    with pytest.raises(PermissionError, match="is not a folder"):
        own_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_is_refused(cache: Path) -> None:
    (cache / "tspec").mkdir(mode=0o700)
    os.chown(cache / "tspec", 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to user 65534, not to 0"):
        own_folder()


def test_the_runtime_folder_serves_where_there_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert own_folder() == tmp_path / "tspec"


@pytest.mark.slow
def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    (tmp_path / "cache" / "tspec").mkdir(parents=True)
    (tmp_path / "cache" / "tspec").chmod(0o777)
    for command in (tspec_run(), ["-m", "tspec", "record", "-o", "out", "--", "train.py"]):
        result = done(folder, *command)
        assert result.returncode == 2
        assert f"tspec: {tmp_path / 'cache' / 'tspec'}: is open to other users" in result.stderr
        assert "set XDG_CACHE_HOME to a folder of your own" in result.stderr
        assert "begun" not in result.stdout


@pytest.mark.slow
def test_nothing_is_written_to_the_shared_temporary_folder(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    (tmp_path / "tmp").mkdir()
    temporary = {"TMPDIR": str(tmp_path / "tmp")}
    assert done(folder, *tspec_run("killed"), **temporary).returncode == 137
    record = ["-m", "tspec", "record", "-o", "out", "--", "train.py", "killed"]
    assert done(folder, *record, **temporary).returncode == -9
    assert [one.name for one in (tmp_path / "tmp").iterdir() if "tspec" in one.name] == []
    # What a killed recording left is removed by the next.
    arguments = tmp_path / "cache" / "tspec" / "arguments"
    assert len(list(arguments.glob("*.json"))) == 1
    record = ["-m", "tspec", "record", "-o", "again", "--", "train.py"]
    assert done(folder, *record, **temporary).returncode == 0
    assert list(arguments.glob("*.json")) == []


def test_arguments_of_one_who_lives_stay(cache: Path) -> None:
    with argument_file({"a": 1}) as first:
        code = "from tspec.runtime.messages.folders import argument_file as a\nwith a(2) as p: print(p.read_text())"
        assert (
            done(cache, "-c", code, **environment(cache) | {"XDG_CACHE_HOME": str(cache)}).stdout
            == "2\n"
        )
        assert first.read_text() == '{"a": 1}'
        with argument_file(3) as second:
            assert first.exists()
            assert mode(second) == 0o600
    assert not first.exists()


FIRST = """\
import sys
from tspec.run.folder import joined
from tspec.runtime.messages.launch import Launch

with joined(Launch("job", rank=0, world=2)) as folder:
    folder.reported()
"""


def test_a_rank_waits_for_the_report_of_the_first_which_may_start_later(cache: Path) -> None:
    with joined(Launch("job", rank=1, world=2)) as folder:
        waits = threading.Thread(target=folder.wait_for_report, args=(PATIENCE,))
        waits.start()
        waits.join(0.3)
        assert waits.is_alive()
        subprocess.run([sys.executable, "-c", FIRST], check=True, timeout=PATIENCE)
        assert folder.path.joinpath(REPORTED).exists()
        waits.join(PATIENCE)
    assert not folder.path.exists()


def test_a_rank_does_not_wait_for_a_report_on_another_machine(cache: Path) -> None:
    with joined(Launch("job", rank=1, world=2, first_is_here=False)) as folder:
        folder.wait_for_report(PATIENCE)
        assert not folder.path.joinpath(REPORTED).exists()


def test_an_attempt_after_a_stop_is_of_the_same_launcher_and_later(tmp_path: Path) -> None:
    joins(tmp_path, Launch("job", attempt=0, more=True))
    counts = tmp_path / f"{os.getpid()}.counts.json"
    again = Launch("job", attempt=1)
    assert stopped_before(tmp_path, again) == ""
    write_json(counts, {"stopped": ""})
    assert stopped_before(tmp_path, again) == ""
    write_json(counts, {"stopped": "stopped in step 4"})
    found = stopped_before(tmp_path, again)
    assert found == "the job was stopped in step 4 in attempt 0; it is not run again"
    for other in (Launch("job"), Launch("other", attempt=1), Launch()):
        assert stopped_before(tmp_path, other) == ""
