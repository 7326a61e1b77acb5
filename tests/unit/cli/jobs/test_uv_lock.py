"""uv.lock as pip reads it, and what is refused of it before any node is asked."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusterctl.jobs.run_request import locked_by_uv, sent_file
from clusterctl.jobs.snapshot import Snapshot
from clusterctl.jobs.uv_lock import UvLock, read_uv_lock, requirement_lines
from clusterctl.on_node.job.own_python import refuse_other_python
from clusterctl_infra.errors import UsageError

HASHED = """\
--index-url https://pypi.org/simple
--extra-index-url https://download.pytorch.org/whl/cu128

numpy==2.1 ; python_full_version >= '3.11' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
torch==2.9.0+cu128 \\
    --hash=sha256:cc
"""
PARTLY = "--find-links wheels\nnumpy==2.1 \\\n    --hash=sha256:aa\ntinypkg==1.2\n"


class FakeUv:
    """uv on a computer that has it, or has none: what it says to `lock --check` and to `export`."""

    def __init__(self, exported: str = HASHED, *, error: str = "", absent: bool = False, slow: bool = False) -> None:
        self._exported, self._error, self._absent, self._slow = exported, error, absent, slow
        self.asked: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], folder: Path) -> tuple[int, str, str]:
        self.asked.append(argv)
        if self._absent:
            raise FileNotFoundError(2, "No such file or directory", "uv")
        if self._slow:
            raise subprocess.TimeoutExpired(list(argv), 300)
        if argv[1] == "lock":
            return (1, "", f"Resolved 5 packages in 12ms\n{self._error}") if self._error else (0, "", "")
        return 0, "numpy==2.1\ntinypkg==1.2\n" if "--no-hashes" in argv else self._exported, ""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A pyproject.toml with its lock."""
    (tmp_path / "uv.lock").write_text('version = 1\nrequires-python = ">=3.11"\n')
    (tmp_path / "pyproject.toml").touch()
    return tmp_path / "pyproject.toml"


def test_a_lock_of_uv_is_read_with_its_hashes_and_its_python(project: Path) -> None:
    uv = FakeUv()
    assert read_uv_lock(project, uv) == UvLock(text=HASHED, requires_python=">=3.11")
    assert [argv[:3] for argv in uv.asked] == [("uv", "lock", "--check"), ("uv", "export", "--frozen")]
    packages = ["numpy==2.1 ; python_full_version >= '3.11'", "torch==2.9.0+cu128"]
    assert [line.split("  ")[0].strip() for line in requirement_lines(HASHED)] == packages


def test_where_a_package_has_no_hash_pip_gets_none(project: Path) -> None:
    assert read_uv_lock(project, FakeUv(PARTLY)).text == "numpy==2.1\ntinypkg==1.2\n"


REFUSED = {
    "an old lock": (FakeUv(error="error: The lockfile needs to be updated"), "uv.lock does not fit it: The lockfile"),
    "no uv": (FakeUv(absent=True), "read by uv, and this computer has none"),
    "a slow index": (FakeUv(slow=True), "uv lock --check took longer than 300 s"),
    "a folder": (FakeUv("-e ./lib \\\n    --hash=sha256:aa\n"), "-e ./lib .*not supported yet"),
    "an archive": (FakeUv("lib @ file:///home/ada/lib.whl --hash=sha256:aa\n"), "lib @ file.*not supported yet"),
}


@pytest.mark.parametrize(("uv", "message"), REFUSED.values(), ids=REFUSED)
def test_a_lock_that_pip_cannot_install_on_a_node_is_refused(project: Path, uv: FakeUv, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_uv_lock(project, uv)


def test_a_project_without_a_lock_is_refused_and_so_is_one_that_cannot_be_read(project: Path) -> None:
    lock = project.with_name("uv.lock")
    lock.write_text("[[")
    with pytest.raises(UsageError, match="cannot be read"):
        read_uv_lock(project, FakeUv())
    lock.unlink()
    with pytest.raises(UsageError, match=r"there is no uv\.lock beside it"):
        read_uv_lock(project, FakeUv())


def test_requirements_are_pip_s_file_or_a_project_s(project: Path) -> None:
    names = ("a/requirements.txt", "pyproject.toml", "setup.cfg", "uv.lock")
    snapshot = Snapshot(folder=project.parent, files=names, size_bytes=0)
    assert [sent_file(Path(name), snapshot) for name in names[:2]] == list(names[:2])
    assert locked_by_uv("a/requirements.txt", snapshot) is None
    for name in names[2:]:
        with pytest.raises(UsageError, match=r"neither a requirements\.txt"):
            sent_file(Path(name), snapshot)


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("3.10.12", ">=3.9", True),
        ("3.8.19", ">=3.9", False),
        ("3.13.0", ">=3.11, <3.13", False),
        ("3.12.9", ">=3.11,<3.13", True),
        ("3.12.9", "==3.12.*", True),
        ("3.11.2", "==3.12.*", False),
        ("3.11.2", "==3.11.2", True),
        ("3.11.2", "!=3.11.2", False),
        ("3.11.2", "~=3.10", True),
        ("3.11.2", "~=3.10.1", False),
        ("3.11.2", ">3.11.2", False),
        ("3.11.2", "<=3.11", False),
        ("3.11.2", "<=3.11.2", True),
        ("3.11.2", "<3.11.2", False),
        ("3.14.0rc1", ">=3.14", True),
        ("3.11.2", "", True),
    ],
)
def test_a_python_that_the_lock_is_not_for_is_refused(version: str, wanted: str, fits: bool) -> None:
    if fits:
        refuse_other_python(version, wanted)
    else:
        with pytest.raises(ValueError, match=f"Python {version}, and uv.lock is for"):
            refuse_other_python(version, wanted)
