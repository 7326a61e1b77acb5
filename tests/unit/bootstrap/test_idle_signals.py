"""What a node reads of itself: files of a machine that exists only here, and an nvidia-smi of the test's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.idle_judge import Reading
from clusterctl_bootstrap.node.idle_signals import read

from tests.unit.bootstrap.fake_outside import FakeOutside

SLOT_0 = ("10.0.8.0", 50123)
TCP_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
# 10.0.8.2:22 ← 10.0.8.0:50123 (slot 0 asks), ← 203.0.113.7:40000 (a person); → 10.0.8.3:22 (from here);
# 22 listens; a connection to 22 that is being closed.
TCP = (
    "   0: 0208000A:0016 0008000A:C3CB 01 00000000:00000000 00:00000000 00000000     0        0 1\n"
    "   1: 0208000A:0016 077100CB:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2\n"
    "   2: 0208000A:C000 0308000A:0016 01 00000000:00000000 00:00000000 00000000     0        0 3\n"
    "   3: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4\n"
    "   4: 0208000A:0016 077100CB:9C41 06 00000000:00000000 00:00000000 00000000     0        0 5\n"
)
DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo: 900000 1 0 0 0 0 0 0 900000 1 0 0 0 0 0 0
  ens5: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0
docker0: 70000 1 0 0 0 0 0 0 70000 1 0 0 0 0 0 0
"""
DISK = "  10 0 80 5 20 0 4096 9 0 14 14\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a node with two GPUs, one disk, EFA and one process."""
    files = {
        "run/systemd/system/keep": "",
        "run/clusterctl/boot-id": "b",
        "etc/clusterctl/status.json": json.dumps({"phase": "ready", "boot_id": "b"}),
        "var/lib/clusterctl/cluster.json": "{}",
        "proc/net/tcp": TCP_HEAD + TCP,
        "proc/net/dev": DEV,
        "proc/41/stat": "41 (a ) name) S 1 41 41 0 -1 0 0 0 0 0 100000 2000 300 40 20 0 1 0 5 0 0\n",
        "sys/block/nvme0n1/stat": DISK,
        "sys/block/nvme0n1/device/model": "",
        "sys/block/loop0/stat": DISK,
        "sys/class/infiniband/rdmap0/ports/1/hw_counters/tx_bytes": "7000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def gpus(percents: str = "0\n98", processes: str = "4711", code: int = 0) -> FakeOutside:
    """A machine whose nvidia-smi says this."""
    outside = FakeOutside()
    outside.answer = lambda argv: (code, percents if "utilization" in argv[1] else processes)
    return outside


def seen(machine: Path, outside: FakeOutside | None = None) -> Reading:
    return read(machine, 2, SLOT_0, outside or gpus())


def test_every_signal_is_read(machine: Path) -> None:
    before_s = sum(os.times()[:4])
    found = seen(machine)
    assert found.unreadable == ()
    assert (found.phase, found.gpu_percents, found.gpu_processes, found.jobs) == ("ready", (0, 98), 1, ())
    assert found.disk_bytes == 4096 * 512
    assert found.network_bytes == 1500 + 7000
    everybodys_s = 1023.4  # (100000 + 2000 + 300 + 40) ticks of a hundredth
    assert before_s - 0.01 <= everybodys_s - found.cpu_s <= sum(os.times()[:4]) + 0.01  # but for this process


def test_the_connection_over_which_slot_0_asks_is_nobodys_session(machine: Path) -> None:
    assert seen(machine).ssh_sessions == 1
    assert read(machine, 2, ("10.0.8.0", 50124), gpus()).ssh_sessions == 2


def test_a_session_over_ipv6_counts_and_slot_0_is_known_there_too(machine: Path) -> None:
    mapped = "0000000000000000FFFF0000"
    (machine / "proc/net/tcp").write_text(TCP_HEAD)
    (machine / "proc/net/tcp6").write_text(
        TCP_HEAD
        + f"   0: {mapped}0208000A:0016 {mapped}0008000A:C3CB 01 0 0 0 0 0 1\n"
        + "   1: 000080FE00000000FF00000200000001:0016 000080FE00000000FF00000200000002:9C40 01 0 0 0 0 0 2\n"
    )
    assert seen(machine).ssh_sessions == 1


def test_a_file_in_the_folder_of_jobs_is_a_job(machine: Path) -> None:
    (machine / "run/clusterctl/jobs").mkdir()
    (machine / "run/clusterctl/jobs/train").touch()
    assert seen(machine).jobs == ("train",)


@pytest.mark.parametrize(("process", "expected"), [("41 5", ("train",)), ("41 6", ()), ("42 5", ())])
def test_a_job_that_names_its_supervisor_counts_while_that_lives(
    machine: Path, process: str, expected: tuple[str, ...]
) -> None:
    (machine / "run/clusterctl/jobs").mkdir()
    (machine / "run/clusterctl/jobs/train").write_text(process + "\n")
    found = seen(machine)
    assert (found.jobs, found.unreadable) == (expected, ())


def test_a_container_has_no_disks_of_its_own(machine: Path) -> None:
    (machine / "run/systemd/container").write_text("systemd-nspawn")
    assert seen(machine).disk_bytes is None


def test_a_push_changes_what_is_read(machine: Path) -> None:
    before = seen(machine).changed
    pushed = machine / "var/lib/clusterctl/cluster.json.new"
    pushed.write_text("{}")
    pushed.replace(machine / "var/lib/clusterctl/cluster.json")
    assert seen(machine).changed != before


UNREADABLE: dict[str, tuple[Callable[[Path], FakeOutside], str]] = {
    "nvidia-smi fails": (lambda root: gpus("no driver", "no driver", code=9), "GPU use not readable"),
    "a GPU is gone": (lambda root: gpus(percents="0"), "GPU use not readable (1 GPUs of 2)"),
    "a GPU is divided": (lambda root: gpus(percents="[N/A]\n0"), "GPU use not readable"),
    "no process table": (lambda root: removed(root / "proc/41/stat", "nonsense"), "processes not readable"),
    "no connections": (lambda root: removed(root / "proc/net/tcp"), "SSH sessions not readable"),
    "no interfaces": (lambda root: removed(root / "proc/net/dev", "a\nb\nens5: x"), "network not readable"),
    "no disks": (lambda root: removed(root / "sys/block/nvme0n1/stat"), "disks not readable"),
    "no membership": (lambda root: removed(root / "var/lib/clusterctl/cluster.json"), "membership not readable"),
}


def removed(path: Path, instead: str = "") -> FakeOutside:
    """The file is gone, or holds something else."""
    path.unlink()
    if instead:
        path.write_text(instead)
    return gpus()


@pytest.mark.parametrize(("breaks", "why"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_said(machine: Path, breaks: Callable[[Path], FakeOutside], why: str) -> None:
    reasons = seen(machine, breaks(machine)).unreadable
    assert reasons
    assert reasons[0].startswith(why)


def test_sessions_that_cannot_be_read_count_as_none_beside_the_sign_that_they_cannot(machine: Path) -> None:
    found = seen(machine, removed(machine / "proc/net/tcp"))
    assert (found.ssh_sessions, len(found.unreadable)) == (0, 1)


def test_a_node_without_gpus_is_not_asked_for_them(machine: Path) -> None:
    outside = gpus(code=127)
    found = read(machine, 0, SLOT_0, outside)
    assert (found.gpu_percents, found.gpu_processes, found.unreadable) == (None, None, ())
    assert outside.commands == []
