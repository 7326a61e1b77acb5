"""Full disks under a cluster: refused before anything changes, and a state that one tore costs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.recorded_stack import PRIVATE, instances
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, run

HOME, STATE = "clusterctl-home", "state"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of one node, not yet up. Needs root, for the small disks that these tests mount."""
    if os.geteuid() != 0:
        pytest.fail("a small disk is mounted by root alone")
    with rehearsed(tmp_path, machines="none", nodes=1, **PRIVATE) as made:
        made.keep_steps()
        yield made


@pytest.mark.parametrize("place", [HOME, STATE])
def test_a_change_that_finds_no_room_says_where_and_how_much(cluster: Rehearsed, tmp_path: Path, place: str) -> None:
    small = tmp_path / place
    small.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(small)], check=True)
    try:
        for verb in ("up", "down"):
            done = cluster.run(verb, str(cluster.folder))
            assert done.exit_code == 1, done.text
            assert "has 4 MiB free, and a change of a cluster needs 32 MiB there: nothing was changed" in done.stderr
            assert f"next: df -h {small}" in done.stderr
        assert cluster.run("plan", str(cluster.folder)).exit_code == 0
        assert cluster.resources() == []
        assert not [path for folder in (HOME, STATE) for path in (tmp_path / folder).rglob("*.json")]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.parametrize("place", [HOME, STATE])
def test_a_down_without_room_for_the_state_ends_machines_and_reservations_by_their_tags(
    ready: Rehearsed, tmp_path: Path, place: str
) -> None:
    cluster, small = ready, ready.folder.parent / place
    cluster.keep_steps()
    shutil.copytree(small, tmp_path / "kept", symlinks=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=0700", "tmpfs", str(small)], check=True)
    try:
        shutil.copytree(tmp_path / "kept", small, symlinks=True, dirs_exist_ok=True)
        filler = small / "filler"
        room_bytes = shutil.disk_usage(small).free - 16 * 2**20
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, room_bytes)
        ended = cluster.run("down", str(cluster.folder))
        assert ended.exit_code == 1, ended.text
        assert "MiB there, so its state cannot be changed." in ended.stderr
        assert "its machines were ended by their tags" in ended.stderr
        assert instances(cluster) == []
        assert not [resource for resource in cluster.resources() if resource.token.endswith(":CapacityReservation")], (
            cluster.resources()
        )

        filler.unlink()
        done = cluster.run("down", str(cluster.folder))
        assert done.exit_code == 0, done.text
        assert "nothing of it is left, nothing bills" in done.stderr
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_rehearsed_region_that_finds_no_room_says_so(cluster: Rehearsed, tmp_path: Path) -> None:
    home = tmp_path / HOME
    home.mkdir()
    filled = f'mount -t tmpfs -o size=64k,mode=0700 tmpfs {home}; cat /dev/zero >{home}/full 2>/dev/null; exec "$@"'
    asked = ["unshare", "-m", "sh", "-c", filled, "sh", CLUSTERCTL, "reap", "--rehearse"]
    done = run(asked, env=cluster.env, cwd=cluster.folder, timeout_s=60)
    assert done.exit_code == 1, done.text
    assert f"clusterctl: {home}/rehearsal: no space left on device" in done.stderr
    assert f"next: df -h {home}/rehearsal" in done.stderr


def test_a_state_that_a_full_disk_tore_is_put_back_and_what_it_lacks_is_found(ready: Rehearsed) -> None:
    cluster, engines = ready, ready.folder.parent / STATE / ".pulumi"
    folder = engines / "stacks" / cluster.name
    state, backup, kept = (folder / f"dev.json{end}" for end in ("", ".bak", ".kept"))
    before, known = state.read_text(), instances(cluster)
    cluster.up("--nodes", "3")
    (lost,) = {*instances(cluster)} - {*known}
    for torn in (state, backup):  # as the backend leaves them
        torn.write_text("")
    for folder_of_copies in ("history", "backups"):
        shutil.rmtree(engines / folder_of_copies)
    kept.write_text(before)  # as the run left it that was under way

    done = cluster.run("down", str(cluster.folder))
    assert done.exit_code == 0, done.text
    assert "the state's file was damaged (0 bytes, as by a full disk): restored as it was at" in done.stderr
    assert f"ending instance {lost}: it is in no Pulumi state" in done.stderr
    assert instances(cluster) == []
