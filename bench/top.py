"""What `clusterctl top` costs here while it shows 64 nodes × 8 GPUs once a second, over real SSH connections."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.outputs import Inventory, InventoryNode, InventorySsh, inventory_to_json
from clusterctl_rehearsal.gpu.files import DATA, gpu_data

NODES, GPUS = 64, 8
ROWS, COLUMNS = 70, 140
HEARD_S, SETTLE_S, MEASURED_S = 60.0, 3.0, 20.0
ADDRESS = "127.0.0.1"


def table() -> list[tuple[str, ...]]:
    """One row: nodes × GPUs, interval, share of one core, resident memory, aim."""
    with tempfile.TemporaryDirectory(prefix="clusterctl-bench-") as name:
        folder = Path(name)
        with _server(folder) as port:
            _write_inventory(folder, port)
            share, memory_mib = _measured(folder)
    return [(f"{NODES} × {GPUS}", "1 s", f"{share:.1%} of a core", f"{memory_mib:.0f} MiB", "< 15 %")]


@contextmanager
def _server(folder: Path) -> Iterator[int]:
    """The port of an sshd that stands for all nodes, with the rehearsal's nvidia-smi behind it."""
    for key in ("host_key", "login"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / key], check=True, timeout=10
        )
    kind = load_catalog().instance_type("p5.48xlarge")
    assert kind is not None
    tools = folder / "bin"
    tools.mkdir()
    (tools / "gpus.json").write_text(json.dumps(gpu_data(kind, "i-0")))
    source = files("clusterctl_rehearsal.gpu").joinpath("nvidia_smi.py").read_text(encoding="utf-8")
    program = tools / "nvidia-smi"
    program.write_text(source.replace(DATA, str(tools / "gpus.json")))
    program.chmod(0o755)
    with closing(socket.socket()) as taken:
        taken.bind((ADDRESS, 0))
        port = int(taken.getsockname()[1])
    config = folder / "sshd.conf"
    config.write_text(
        f"ListenAddress {ADDRESS}\nPort {port}\nHostKey {folder / 'host_key'}\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {folder / 'login.pub'}\nUsePAM no\nPasswordAuthentication no\n"
        f"PermitRootLogin prohibit-password\nMaxStartups 200\nSetEnv PATH={tools}:/usr/bin:/bin\n"
    )
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
    assert sshd is not None, "needs sshd: apt-get install openssh-server"
    Path("/run/sshd").mkdir(exist_ok=True)
    with subprocess.Popen([sshd, "-D", "-f", str(config)], stdin=subprocess.DEVNULL) as server:
        try:
            yield port
        finally:
            server.terminate()


def _write_inventory(folder: Path, port: int) -> None:
    home = folder / "home"
    keys = home / "keys" / "train"
    keys.mkdir(parents=True)
    shutil.copy(folder / "login", keys / "id_ed25519")
    host_key = (folder / "host_key.pub").read_text().strip()
    inventory = Inventory(
        name="train",
        cluster="train",
        cluster_id="0" * 12,
        run=1,
        rehearsal=True,
        region="us-west-2",
        zone="us-west-2b",
        owner="bench",
        image_id="ami-00000000000000000",
        instance_type="p5.48xlarge",
        gpus_per_node=GPUS,
        gpu_name="H100 80GB",
        started_at="2026-01-01T00:00:00+00:00",
        deadline="2126-01-01T00:00:00+00:00",
        deadline_reason="runtime",
        usd_per_hour=3522.56,
        budget_usd=None,
        generation=1,
        ssh=InventorySsh(user=getpass.getuser(), key_file="train/id_ed25519", proxy_command=None, port=port),
        nodes=tuple(
            InventoryNode(slot=slot, rank=slot, name=f"train-{slot}", private_ip=ADDRESS, host_public_key=host_key)
            for slot in range(NODES)
        ),
    )
    path = home / "inventory" / "train.json"
    path.parent.mkdir()
    path.write_text(json.dumps(inventory_to_json(inventory)))


def _measured(folder: Path) -> tuple[float, float]:
    """The share of one core that `top` takes once all nodes are heard, and its memory in MiB."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {**os.environ, "CLUSTERCTL_HOME": str(folder / "home"), "TERM": "xterm-256color"}
    argv = [sys.executable, "-m", "clusterctl", "top"]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as top:
        os.close(theirs)
        seen = bytearray()
        threading.Thread(target=_drain, args=(ours, seen), daemon=True).start()
        try:
            _wait_until_heard(seen)
            time.sleep(SETTLE_S)
            seen.clear()
            before = cpu_s(top.pid)
            time.sleep(MEASURED_S)
            share = (cpu_s(top.pid) - before) / MEASURED_S
            _wait_until_heard(seen)  # still heard: a view that has lost its nodes costs nothing
            return share, _resident_mib(top.pid)
        finally:
            top.send_signal(signal.SIGKILL)
            os.close(ours)


def _wait_until_heard(seen: bytearray) -> None:
    ends_at = time.monotonic() + HEARD_S
    while re.search(rb"%d/%d heard" % (NODES, NODES), bytes(seen)) is None:
        assert time.monotonic() < ends_at, f"not all nodes were heard in {HEARD_S:.0f} s"
        time.sleep(0.1)


def _drain(descriptor: int, seen: bytearray) -> None:
    try:
        while chunk := os.read(descriptor, 65536):
            seen += chunk
            del seen[:-200_000]
    except OSError:
        return  # the terminal is gone


def cpu_s(pid: int) -> float:
    """User and system time of the process and its threads (proc(5), fields 14 and 15)."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    match = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return 0.0 if match is None else int(match[1]) / 1024
