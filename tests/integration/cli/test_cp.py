"""`clusterctl cp` over a real sshd's SFTP."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.waiting import comes_true

SIZE = 3_000_001


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three megabytes in which no part is repeated."""
    path = tmp_path / "weights.bin"
    path.write_bytes(b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(SIZE // 32 + 1))[:SIZE])
    path.chmod(0o640)
    return path


def partial_of(target: Path, source: Path) -> Path:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return target.with_name(f".{target.name}.clusterctl-{digest[:16]}")


def test_a_file_goes_to_every_node_and_comes_back(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    done = loopback_cluster.run("cp", str(source), f"1:{folder}")
    target = folder / "weights.bin"
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in folder.iterdir()] == ["weights.bin"]
    again = loopback_cluster.run("cp", str(source), f"1:{folder}/")
    assert b"was there already" in again.stderr

    back = tmp_path / "back"
    done = loopback_cluster.run("cp", f"0-2:{target}", str(back))
    assert done.returncode == 0, done.stderr
    for slot in range(3):
        assert (back / f"train-{slot}" / "weights.bin").read_bytes() == source.read_bytes()


def test_a_broken_copy_goes_on_and_begins_anew_where_what_lies_there_is_another(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.bin"
    target.write_bytes(b"the old one")
    partial = partial_of(target, source)
    partial.write_bytes(source.read_bytes()[: SIZE - 10])
    inode = partial.stat().st_ino
    done = loopback_cluster.run("cp", str(source), f"0:{target}")
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_ino == inode

    here = tmp_path / "here.bin"
    partial_of(here, source).write_bytes(source.read_bytes()[:1_000_000])
    done = loopback_cluster.run("cp", f"0:{target}", str(here))
    assert done.returncode == 0, done.stderr
    assert here.read_bytes() == source.read_bytes()
    assert not partial_of(here, source).exists()

    partial.write_bytes(b"\0" * (SIZE - 10))
    here.write_bytes(b"and here something that was never whole")
    here.rename(tmp_path / f"{partial.name[:-16]}{'0' * 16}")
    target.write_bytes(b"the old one")
    done = loopback_cluster.run("cp", str(source), f"0:{target}")
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == source.read_bytes()
    assert not list(tmp_path.glob(".target.bin.*"))


def test_a_link_is_followed_and_permissions_are_the_sources(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    target, link = tmp_path / "step-100.bin", tmp_path / "latest.bin"
    target.write_bytes(b"old")
    link.symlink_to(target.name)
    done = loopback_cluster.run("cp", str(source), f"0:{link}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode() == f"[train-0] {target}\n"
    assert link.is_symlink()
    assert target.read_bytes() == source.read_bytes()

    source.chmod(0o755)
    done = loopback_cluster.run("cp", str(source), f"0:{link}")
    assert done.stderr.decode() == f"[train-0] {target} was there already; its permissions are 755 now\n"
    assert target.stat().st_mode & 0o777 == 0o755
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = loopback_cluster.run("cp", str(source), f"0:{pipe}")
    assert done.stderr.decode() == f"clusterctl: train-0: {pipe} is there already and is not a regular file\n"
    assert done.returncode == 1


def test_what_fails_is_named_and_the_others_are_copied(
    loopback_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    loopback_cluster.stop(3)
    done = loopback_cluster.run("cp", f"2-3:{source}", f"{tmp_path / 'out'}/", "--connect-timeout", "5s")
    assert (tmp_path / "out" / "train-2" / "weights.bin").is_file()
    assert b"[train-3] " in done.stderr
    assert b"refuses connections" in done.stderr
    assert done.returncode == 4
    done = loopback_cluster.run("cp", "1:/nowhere/at/all", str(tmp_path))
    assert b"train-1: /nowhere/at/all: No such file" in done.stderr
    assert done.returncode == 1
    done = loopback_cluster.run("cp", f"1:{source}", str(tmp_path / "no folder" / "x"))
    assert done.stderr.decode() == f"clusterctl: train-1: there is no folder {tmp_path / 'no folder'} here\n"
    done = loopback_cluster.run("cp", f"1:{tmp_path}", str(tmp_path))
    assert b" is a folder, and cp without -r copies files" in done.stderr


def grows_when(program: str, cluster: LoopbackCluster, slot: int, file: Path) -> None:
    """On the slot's node, each run of the program works as ever, and then appends to the file."""
    path = cluster.folder / f"node-{slot}" / "bin" / program
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n/usr/bin/{program} "$@"\necho more >>{file}\n')
    path.chmod(0o755)


def test_of_a_file_that_grows_comes_what_it_was_at_first(
    trusting_cluster: LoopbackCluster, source: Path, tmp_path: Path
) -> None:
    log, copy = tmp_path / "train.log", tmp_path / "copy.log"
    log.write_text("step 1\n")
    grows_when("sha256sum", trusting_cluster, 0, log)
    done = trusting_cluster.run("cp", f"0:{log}", str(copy))
    assert (done.returncode, copy.read_text()) == (0, "step 1\n"), done.stderr
    before = log.read_text()
    done = trusting_cluster.run("cp", f"0:{log}", "1:train.log")
    assert (done.returncode, (folders(trusting_cluster)[1] / "train.log").read_text()) == (0, before), done.stderr
    grows_when("stat", trusting_cluster, 2, source)
    before = source.read_text("latin-1")
    done = trusting_cluster.run("cp", str(source), "2:there.bin")
    there = folders(trusting_cluster)[2] / "there.bin"
    assert (done.returncode, there.read_text("latin-1") == before) == (0, True), done.stderr
    assert source.read_text("latin-1") != before, "it has grown"


def test_a_file_that_does_not_say_how_long_it_is_goes_up_whole_and_comes_back_with_another_command(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    done = loopback_cluster.run("cp", "/proc/version", "0:version")
    assert (loopback_cluster.folder / "node-0" / "version").read_bytes() == Path("/proc/version").read_bytes()
    assert b"was there already" in loopback_cluster.run("cp", "/proc/version", "0:version").stderr
    done = loopback_cluster.run("cp", "0:/proc/version", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "clusterctl: train-0: /proc/version has content but reports size 0, as files of /proc do; "
        "to read it: clusterctl ssh --node train-0 cat /proc/version\n"
    )
    assert not list(tmp_path.glob("*version*"))


LARGE = 24_000_000


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """As large as a file must be to go from node to node."""
    path = tmp_path / "large.bin"
    block = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(LARGE // 320))
    path.write_bytes(b"".join(bytes([n]) + block[1:] for n in range(LARGE // len(block))) + b"end")
    return path


def folders(cluster: LoopbackCluster) -> list[Path]:
    """Each node's own place for files: they share this computer's disk, but not their homes."""
    return [cluster.folder / f"node-{slot}" for slot in range(4)]


def test_a_large_file_goes_from_node_to_node_and_only_once_from_here(
    trusting_cluster: LoopbackCluster, large: Path
) -> None:
    done = trusting_cluster.run("cp", str(large), "all:large.bin")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stderr.decode().splitlines())
    assert [line.split("]")[0] for line in lines] == [f"[train-{slot}" for slot in range(4)]
    assert sum(" from train-" in line for line in lines) == 3, lines
    for folder in folders(trusting_cluster):
        assert (folder / "large.bin").read_bytes() == large.read_bytes()
        assert not list(folder.glob(".large.bin.clusterctl-*"))
    again = trusting_cluster.run("cp", str(large), "all:large.bin")
    assert again.stderr.count(b"was there already") == 4


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_node_that_cannot_give_it_on_takes_nobody_with_it(
    trusting_cluster: LoopbackCluster, large: Path, is_lost: bool
) -> None:
    """Every node but one breaks off in the middle of what it passes on; each broken copy is resumed from another."""
    for slot in (0, 1, 2):
        trusting_cluster.install_ssh(slot, break_after_bytes=9_000_000, is_lost=is_lost)
    done = trusting_cluster.run("cp", str(large), "all:large.bin", timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert b"(before that, train-" in done.stderr
    for folder in folders(trusting_cluster):
        assert (folder / "large.bin").read_bytes() == large.read_bytes()


def test_a_node_that_is_gone_in_the_middle_is_named_and_the_others_have_it(
    trusting_cluster: LoopbackCluster, large: Path
) -> None:
    trusting_cluster.stop(2)
    done = trusting_cluster.run("cp", str(large), "all:large.bin")
    assert done.returncode == 4
    assert b"[train-2] 127.0.17.3:" in done.stderr
    for slot in (0, 1, 3):
        assert (folders(trusting_cluster)[slot] / "large.bin").read_bytes() == large.read_bytes()


def test_a_file_goes_from_one_node_to_another(trusting_cluster: LoopbackCluster, large: Path) -> None:
    first, second = folders(trusting_cluster)[:2]
    (first / "it's here.bin").write_bytes(large.read_bytes()[:SIZE])
    done = trusting_cluster.run("cp", "0:it's here.bin", "1:there.bin")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b"[train-1] there.bin from train-0\n"
    assert (second / "there.bin").read_bytes() == large.read_bytes()[:SIZE]
    done = trusting_cluster.run("cp", "0:nothing", "1:there.bin")
    assert done.returncode == 1
    assert b"train-0: nothing: No such file" in done.stderr


def test_a_file_on_its_way_is_for_nobody_else_to_read(
    trusting_cluster: LoopbackCluster, large: Path, tmp_path: Path
) -> None:
    """What there is of a file while its other megabytes are waited for."""
    nodes = folders(trusting_cluster)
    (nodes[0] / "large.bin").write_bytes(large.read_bytes())
    for slot in (0, 1):
        trusting_cluster.install_ssh(slot, break_after_bytes=9_000_000)
    assert trusting_cluster.run("cp", "0:large.bin", "1:there.bin").returncode == 1
    (left,) = nodes[1].glob(".there.bin.clusterctl-*")
    assert (left.stat().st_size, left.stat().st_mode & 0o777) == (9_000_000, 0o600)


def test_a_download_that_a_person_interrupts_names_what_it_has_left(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    huge = tmp_path / "huge.bin"
    huge.touch()
    os.truncate(huge, 400_000_000)
    back = tmp_path / "back"
    with subprocess.Popen(
        loopback_cluster.command("cp", f"0:{huge}", f"{back}/"), stderr=subprocess.PIPE, env=loopback_cluster.environ
    ) as process:
        assert comes_true(lambda: any(path.stat().st_size > 1_000_000 for path in back.glob(".huge.bin.*")))
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        stderr = process.stderr.read().decode()
    (left,) = back.iterdir()
    assert f" MB are kept in {left}: run the same command again to resume\n" in stderr
    assert process.returncode == 130


def test_a_file_goes_to_machines_of_a_persons_own_list_and_comes_back(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    nodes = loopback_cluster.inventory.nodes[:2]
    rows = [
        {"name": f"lab-{node.slot}", "address": node.private_ip, "host_key": node.host_public_key} for node in nodes
    ]
    ssh = {"port": loopback_cluster.port, "key_file": str(loopback_cluster.folder / "login")}
    lab, source, back = tmp_path / "lab.json", tmp_path / "w.bin", tmp_path / "back"
    lab.write_text(json.dumps({"ssh": ssh, "nodes": rows}))
    source.write_bytes(b"weights")
    back.mkdir()

    sent = loopback_cluster.run("cp", "--inventory", str(lab), str(source), "all:w.bin")
    assert sent.returncode == 0, sent.stderr
    assert [(loopback_cluster.folder / f"node-{slot}" / "w.bin").read_bytes() for slot in (0, 1)] == [b"weights"] * 2
    fetched = loopback_cluster.run("cp", "--inventory", str(lab), "lab-1:w.bin", f"{back}/")
    assert fetched.returncode == 0, fetched.stderr
    assert (back / "w.bin").read_bytes() == b"weights"

    loopback_cluster.change_host_key(1)
    refused = loopback_cluster.run("cp", "--inventory", str(lab), str(source), "all:w.bin")
    assert refused.returncode == 4
    assert b"[lab-1]" in refused.stderr
    assert b"host key" in refused.stderr
