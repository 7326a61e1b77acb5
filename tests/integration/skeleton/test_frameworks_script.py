"""`scripts/frameworks`: what is in the cache is given without asking anybody, and a failed fetch is reported."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from framework_packages import CHECKOUT, framework_folder

NOBODY = "http://127.0.0.1:1/simple"
"""No index: nothing listens there."""


def fetch(name: str, cache: Path) -> subprocess.CompletedProcess[str]:
    own = {"CLUSTERCTL_CACHE": str(cache), "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": NOBODY}
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    argv = [str(CHECKOUT / "scripts" / "frameworks"), name]
    return subprocess.run(argv, env={**environ, **own}, capture_output=True, text=True, timeout=120, check=False)


def test_what_is_in_the_cache_is_fetched_from_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERCTL_CACHE", str(tmp_path))
    folder = framework_folder("jax")
    folder.mkdir(parents=True)
    done = fetch("jax", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}\n", "")


def test_what_cannot_be_fetched_is_told_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    done = fetch("jax", tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "scripts/frameworks: jax could not be installed: pip's output is above" in done.stderr
    assert done.stderr.endswith("next, with the package index in reach: scripts/frameworks jax\n")
    assert [path.name for path in (tmp_path / "frameworks").iterdir()] == [".lock"]
