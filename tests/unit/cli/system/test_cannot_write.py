"""A full or read-only disk, and a home that is no folder, are reported in a sentence."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from clusterctl.commands.rehearse import command as rehearse
from clusterctl.home import home_directory
from clusterctl.system.disk_space import cannot_write
from clusterctl_infra.errors import UsageError

ENVIRON = {"CLUSTERCTL_HOME": "/home/a person/state"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_what_is_free_and_where_to_look(number: int, tmp_path: Path) -> None:
    file = tmp_path / "a stack" / "Pulumi.dev.yaml"
    file.parent.mkdir()
    error = cannot_write(OSError(number, os.strerror(number), str(file)), environ=ENVIRON)
    assert error is not None
    assert error.exit_code == 1
    assert re.fullmatch(
        rf"{file} cannot be written: {os.strerror(number).lower()} \(\S+ [KMG]iB are free\)", str(error)
    )
    assert error.hint == f"df -h '{file.parent}'"


def test_a_disk_that_is_read_only_is_named_with_another_home() -> None:
    file = "/home/a person/state/runs/x.json"
    error = cannot_write(OSError(errno.EROFS, os.strerror(errno.EROFS), file), environ=ENVIRON)
    assert error is not None
    assert str(error).startswith(f"{file} cannot be written: {os.strerror(errno.EROFS).lower()}. ")
    assert error.hint == "unset CLUSTERCTL_HOME"


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.EEXIST])
@pytest.mark.parametrize("place", ["/home/a person/state", "/home/a person/state/runs", "/home"])
def test_a_folder_that_cannot_be_the_home_is_named(number: int, place: str) -> None:
    error = cannot_write(OSError(number, os.strerror(number), place), environ=ENVIRON)
    assert str(error).startswith(f"{place} cannot be written: {os.strerror(number).lower()}. ")


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.ETIMEDOUT])
def test_a_home_whose_server_is_away_is_named_and_nothing_else_is_taken_for_one(number: int) -> None:
    file = "/home/a person/state/inventory/train.json"
    error = cannot_write(OSError(number, os.strerror(number), file), environ=ENVIRON)
    assert str(error).startswith(f"{file} cannot be read or written: {os.strerror(number).lower()}. ")
    assert cannot_write(OSError(number, os.strerror(number), "/dev/pts/3"), environ=ENVIRON) is None
    assert cannot_write(OSError(number, os.strerror(number)), environ=ENVIRON) is None


def test_a_home_that_is_a_file_is_refused_before_anything_is_looked_for_in_it(tmp_path: Path) -> None:
    """Else it would be one in which no cluster is known."""
    (tmp_path / "notes").touch()
    with pytest.raises(UsageError, match="/notes is a file; ") as refused:
        home_directory({"CLUSTERCTL_HOME": str(tmp_path / "notes")})
    assert refused.value.hint == "unset CLUSTERCTL_HOME"
    assert home_directory({"CLUSTERCTL_HOME": str(tmp_path / "new")}).path == tmp_path / "new"


def test_where_nobody_chose_the_home_another_one_is_offered() -> None:
    error = cannot_write(PermissionError(errno.EACCES, "no", "/nonexistent"), environ={"HOME": "/nonexistent"})
    assert error is not None
    assert error.hint == "export CLUSTERCTL_HOME=/var/tmp/clusterctl-$(id -un)"


def test_the_usual_home_that_is_a_file_is_not_called_one_that_somebody_named(tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/state").mkdir()
    (tmp_path / ".local/state/clusterctl").touch()
    with pytest.raises(UsageError) as refused:
        home_directory({"HOME": str(tmp_path)})
    assert "CLUSTERCTL_HOME" not in refused.value.message
    assert refused.value.hint == "export CLUSTERCTL_HOME=/var/tmp/clusterctl-$(id -un)"


def test_a_home_that_is_a_file_is_refused_by_the_rehearsals_verbs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the bill of what runs in another home would be $0.00."""
    (tmp_path / "notes").touch()
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path / "notes"))
    with pytest.raises(UsageError, match="/notes is a file; "):
        rehearse.main(["bill"], standalone_mode=False)


def test_without_a_file_s_name_the_folder_is_named() -> None:
    error = cannot_write(OSError(errno.ENOSPC, "No space left on device"), environ=ENVIRON)
    assert error is not None
    assert str(error).startswith("/home/a person/state cannot be written: no space left on device")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, "no such file"),
        OSError(errno.ENOENT, "no such file", "/etc/x"),
        OSError(errno.EACCES, "no", "/home/a person/state/runs/x.json"),
        OSError("no number"),
        TimeoutError(),
    ],
)
def test_every_other_failure_is_left_to_the_crash_report(error: OSError) -> None:
    assert cannot_write(error, environ=ENVIRON) is None
