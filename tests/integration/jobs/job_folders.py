"""What the tests of jobs start them with: a name that is free, a folder to send, mpirun's words."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path


def new_name() -> str:
    """A name that no job has yet."""
    return f"j{uuid.uuid4().hex[:8]}"


def folder_with(parent: Path, texts: Mapping[str, str]) -> Path:
    """A folder with these files, by name."""
    folder = parent / "work"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def mpi_words(work: Path, name: str, *options: str) -> tuple[str, ...]:
    """`clusterctl run` of two processes on each node by mpirun; the program and its words come behind."""
    own = ("--launcher", "mpi", "--nproc", "2", "--name", name, "--grace", "1s", "--workdir", str(work))
    return ("run", *options, *own)
