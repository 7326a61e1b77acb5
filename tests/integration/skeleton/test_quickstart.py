"""scripts/quickstart in a checkout that nobody has set up yet, and once more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from clusterctl_rehearsal.region.torch_share import IN_MACHINES

from tests.integration.rehearsed import BIN, ROOT, Done, alive, nothing_left, own_environment, run
from tests.integration.without_torch import cache_without_torch

SET_UP_S = 300
STACK = Path("stacks") / "rehearsal"


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """What a person has who has just cloned the project; its cluster has a name that nobody else's has."""

    folder: Path
    name: str
    env: Mapping[str, str]

    def run(self, *argv: str) -> Done:
        """The end of a command typed in it."""
        return run(argv, env=self.env, cwd=self.folder, timeout_s=SET_UP_S)

    def instance_ids(self) -> list[str]:
        """Of its nodes, by rank."""
        listed = self.run(".venv/bin/clusterctl", "nodes", "--json")
        return [row["instance_id"] for row in json.loads(listed.stdout)["nodes"]]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    folder, name = tmp_path / "clusterctl", f"t{uuid.uuid4().hex[:7]}"
    copy_sources(folder)
    for file in ("cluster.yaml", "Pulumi.yaml"):
        written = (folder / STACK / file).read_text()
        assert written.startswith("name: rehearsal\n")
        (folder / STACK / file).write_text(written.replace("name: rehearsal", f"name: {name}", 1))
    path = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(BIN))
    # Not this computer's torch, which scripts/setup does not install: eight processes would load it in each run.
    cache = cache_without_torch(tmp_path / "cache")
    env = {**own_environment(tmp_path), "PATH": path, "CLUSTERCTL_CACHE": cache}
    with nothing_left(name, env=env):
        yield Checkout(folder=folder, name=name, env=env)


def copy_sources(folder: Path) -> None:
    """What git has of this checkout, as it lies there now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for file in filter(None, listed.stdout.split("\0")):
        if (ROOT / file).is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, folder / file, follow_symlinks=False)


def test_a_fresh_clone_has_four_nodes_that_work_together_and_a_second_run_keeps_them(checkout: Checkout) -> None:
    for attempt in ("first", "second"):
        done = checkout.run("scripts/quickstart")
        assert done.exit_code == 0, f"the {attempt} run:\n{done.text}"
        assert f"$ clusterctl up {STACK}" in done.stdout
        assert f"{checkout.name} · 4/4 ready" in done.stdout
        assert "SIMULATED by clusterctl rehearsal" in done.stdout
        assert "$ clusterctl run examples/all_reduce/ring.yaml" in done.stdout
        assert done.stdout.count("all ranks took part") == 4
        assert alive(checkout.name) == [f"{checkout.name}-{rank}" for rank in range(4)]
        if attempt == "first":
            born = checkout.instance_ids()
    assert checkout.instance_ids() == born
    (ending,) = (line for line in done.stdout.splitlines() if "ends it now" in line)
    ended = checkout.run(*f".venv/bin/{ending.split('  ends it now')[0].strip()}".split())
    assert ended.exit_code == 0, ended.text
    assert alive(checkout.name) == []


def test_on_nodes_that_have_torch_its_example_runs(tmp_path: Path) -> None:
    """The command line is a stand-in here: `lifecycle/test_from_up_to_down.py` runs the example on nodes."""
    for name in ("scripts/system-packages", "scripts/setup", "bin/clusterctl", ".venv/bin/activate"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/} $*"\n' if "activate" not in name else "")
        (tmp_path / name).chmod(0o755)
    (tmp_path / STACK).mkdir(parents=True)
    (tmp_path / STACK / "cluster.yaml").write_text("name: any\n")
    shutil.copy(ROOT / "scripts" / "quickstart", tmp_path / "scripts")
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = run([str(tmp_path / "scripts" / "quickstart")], env=env, cwd=tmp_path, timeout_s=60)
    assert done.exit_code == 0, done.text
    assert f"clusterctl ssh --node 0 test -d {IN_MACHINES}\n" in done.stdout
    assert "clusterctl run examples/all_reduce/job.yaml\n" in done.stdout
    assert "ring.yaml" not in done.stdout
