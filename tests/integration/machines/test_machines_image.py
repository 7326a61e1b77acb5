"""Building the base image where it cannot be built, and being killed on the way. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.folders import mount_points
from clusterctl_rehearsal.machines.image import NEEDED_BYTES, host_recipe, image_folder
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.processes import running

from tests.integration.machines.real_cluster import wait_until

BUILD = """
import sys
from pathlib import Path
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
try:
    NspawnDriver(root=Path(sys.argv[1]), cache=Path(sys.argv[1])).prepare(print)
except MachineError as error:
    sys.exit(f"{error} | {error.hint}")
"""


@pytest.fixture(autouse=True)
def can_build(tmp_path: Path) -> None:
    problem = NspawnDriver(root=tmp_path, cache=tmp_path).unusable()
    if problem is not None:
        pytest.fail(problem)


def test_without_a_network_the_source_that_was_not_reached_is_named(tmp_path: Path) -> None:
    done = run_build(tmp_path, "unshare", "--net")
    assert done.returncode == 1
    assert "the base image could not be built: the package source" in done.stderr
    assert done.stderr.strip().endswith("was not reached | apt-get update")
    assert list((tmp_path / "images").glob("*/")) == []


def test_on_a_full_disk_both_sizes_are_named_before_anything_is_fetched(tmp_path: Path) -> None:
    mount_small = f'mount -t tmpfs -o size={NEEDED_BYTES // 4} tmpfs {tmp_path}; exec "$@"'
    done = run_build(tmp_path, "unshare", "--mount", "sh", "-ec", mount_small, "sh")
    assert done.returncode == 1
    assert f"the base image needs 1.2 GB in {tmp_path}/images, 0.3 GB are free" in done.stderr


def test_a_build_killed_half_way_leaves_no_process_and_no_mount_and_its_folder_is_swept(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as build:
        assert build.stdout is not None
        while "extracting" not in build.stdout.readline():
            assert build.poll() is None
        build.send_signal(signal.SIGKILL)
    wait_until(lambda: left_of(tmp_path) == [], f"left behind: {left_of(tmp_path)}")
    assert list((tmp_path / "images").glob("unfinished-*"))
    run_build(tmp_path, "unshare", "--net")
    assert list((tmp_path / "images").glob("unfinished-*")) == []


def test_an_image_that_is_there_is_not_built(tmp_path: Path) -> None:
    folder = image_folder(tmp_path, host_recipe())
    folder.mkdir(parents=True)
    NspawnDriver(root=tmp_path, cache=tmp_path).prepare(pytest.fail)
    assert list(folder.iterdir()) == []


def test_the_verb_says_nothing_of_an_image_that_is_there_and_names_the_tool_that_is_missing(tmp_path: Path) -> None:
    image_folder(tmp_path, host_recipe()).mkdir(parents=True)
    verb = [sys.executable, "-m", "clusterctl", "rehearse", "image"]
    environ = {**os.environ, "CLUSTERCTL_CACHE": str(tmp_path), "CLUSTERCTL_HOME": str(tmp_path / "home")}
    there = subprocess.run(verb, env=environ, capture_output=True, text=True, timeout=60)
    assert (there.returncode, there.stdout, there.stderr) == (0, "", "")
    bare = subprocess.run(verb, env={**environ, "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert bare.returncode == 1
    assert "apt-get install -y --no-install-recommends systemd-container" in bare.stderr


def run_build(cache: Path, *before: str) -> subprocess.CompletedProcess[str]:
    argv = [*before, sys.executable, "-c", BUILD, str(cache)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=200)


def left_of(folder: Path) -> list[str]:
    """Processes at work below a folder, and mounts there in any of their namespaces."""
    found = [" ".join(argv) for number, argv in running() if number != os.getpid() and str(folder) in " ".join(argv)]
    return found + [str(place) for place in mount_points() if place.is_relative_to(folder)]
