"""Every boot, push and look at a node starts the agent: a start loads no costly module that its verb does without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from clusterctl_bootstrap.agent_source import agent_sources, later_sources

LOADED = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module("clusterctl_bootstrap.node." + name)
print(*sys.modules)
"""
COSTLY = {"concurrent.futures", "dataclasses", "email", "http.client", "inspect", "tempfile", "urllib.request"}
"""What takes 2 to 15 ms of processor time to load, where a start of Python takes 9 (3.11, 2026-11-26)."""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent as a node has it."""
    folder = tmp_path_factory.mktemp("agent")
    package = folder / "clusterctl_bootstrap" / "node"
    package.mkdir(parents=True)
    for name, text in {**agent_sources(), **later_sources()}.items():
        (package / name).write_text(text)
    return folder


@pytest.mark.parametrize("modules", [["__main__"], ["__main__", "later"]], ids=["status", "boot and apply"])
def test_a_start_loads_what_its_verb_needs(agent: Path, modules: list[str]) -> None:
    argv = [sys.executable, "-IS", "-c", LOADED, str(agent), *modules]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert COSTLY.intersection(done.stdout.split()) == set()
