"""The stacks near a folder, also where not all of it may be looked into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusterctl.engine.stacks_near import STACK_FILES, stacks_near

NOBODY = 65534


@contextmanager
def not_root() -> Iterator[None]:
    """Root may look into everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if before == 0:
            os.seteuid(before)


def test_what_another_user_closed_is_no_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("train", ".pulumi"):
        (tmp_path / folder).mkdir()
        for file in STACK_FILES:
            (tmp_path / folder / file).touch()
    tmp_path.chmod(0o755)
    (tmp_path / ".pulumi").chmod(0)
    (tmp_path / "stacks").mkdir(mode=0)
    monkeypatch.chdir(tmp_path)
    with not_root():
        assert stacks_near(Path()) == (Path("train"),)
