"""A job starts the program on nodes about ten times on each: a start loads no module that its verb does without."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from clusterctl.jobs.node_program import archive

LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
from clusterctl.on_node.job.__main__ import function_of
function_of(sys.argv[2])
print(*sys.modules)
"""
SLOW = {"asyncio", "ctypes", "dataclasses", "hashlib", "inspect", "shutil", "socket", "subprocess", "tarfile"}
"""What takes 1 to 50 ms of processor time to load, where a start of Python takes 13 (3.11, 2026-11-26)."""
NEEDED = {
    "list": set[str](),
    "events": set[str](),
    "cancel": set[str](),
    "become": {"ctypes"},
    "start": {"subprocess"},
    "take": {"shutil", "subprocess"},
    "facts": {"shutil", "subprocess"},
    "follow": {"ctypes"},
    "rank": {"ctypes", "socket", "subprocess"},
    "keep": {"ctypes", "shutil", "subprocess"},
    "prepare": {"shutil", "subprocess", "tarfile"},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    zipfile.ZipFile(io.BytesIO(archive())).extractall(folder)
    return folder


@pytest.mark.parametrize(("verb", "needed"), NEEDED.items(), ids=NEEDED)
def test_a_start_loads_what_its_verb_needs(program: Path, verb: str, needed: set[str]) -> None:
    argv = [sys.executable, "-IS", "-c", LOADED, str(program), verb]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert SLOW.intersection(done.stdout.split()) == needed
