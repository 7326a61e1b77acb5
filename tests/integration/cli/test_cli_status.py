"""`clusterctl status` against real sshd processes, with AWS silent: a test has no credentials."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.integration.cli.conftest import address
from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def report(phase: str, *, generation: int = 1, error: Mapping[str, object] | None = None) -> str:
    return json.dumps(
        {"version": 1, "phase": phase, "since": "2026-11-21T10:02:00Z", "generation": generation, "error": error}
    )


def test_nodes_speak_for_themselves_when_aws_is_silent(loopback_cluster: LoopbackCluster) -> None:
    loopback_cluster.install_agent(0, report("ready"))
    loopback_cluster.install_agent(1, report("network", generation=0))
    failed = {"phase": "network", "message": "no lease", "log": ["a", "b"]}
    loopback_cluster.install_agent(2, report("failed", error=failed))
    loopback_cluster.stop(3)
    done = loopback_cluster.run("status", "--json")
    shown = {node["name"]: node for node in json.loads(done.stdout)["nodes"]}
    assert [shown[f"train-{n}"]["state"] for n in range(4)] == ["ready", "booting", "failed", "unknown"]
    assert shown["train-1"]["note"] == "not yet told about the current list of nodes"
    assert shown["train-2"]["note"] == "no lease"
    assert "refuses connections" in shown["train-3"]["note"]
    assert done.returncode == 4


def test_a_node_without_an_agent_is_said_so(loopback_cluster: LoopbackCluster) -> None:
    done = loopback_cluster.run("status")
    assert done.stdout.decode().count("no status from the node's agent") == 4


def test_all_ready_is_exit_0(loopback_cluster: LoopbackCluster) -> None:
    for slot in range(4):
        loopback_cluster.install_agent(slot, report("ready"))
    done = loopback_cluster.run("status")
    assert done.returncode == 0
    assert b"4/4 ready" in done.stdout
    assert b"AWS did not say what runs" in done.stdout


def test_silent_nodes_hold_up_neither_each_other_nor_the_rest(loopback_cluster: LoopbackCluster) -> None:
    """The last slot is asked, and its agent runs, while both silent ones keep the command waiting."""
    mark = loopback_cluster.folder / "node-3" / "asked"
    loopback_cluster.install_agent(0, report("ready"))
    loopback_cluster.install_agent(3, report("ready"))
    with (loopback_cluster.folder / "node-3" / "bin" / "clusterctl-node").open("a") as agent:
        agent.write(f"touch {mark}\n")
    loopback_cluster.stop(1)
    loopback_cluster.stop(2)
    argv = loopback_cluster.command("status", "--connect-timeout", "20")
    with contextlib.ExitStack() as silent:
        ports = [silent.enter_context(socket.create_server((address(slot), loopback_cluster.port))) for slot in (1, 2)]
        with subprocess.Popen(
            argv, env=loopback_cluster.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as client:
            asked = [silent.enter_context(accepted(port)) for port in ports]
            assert comes_true(mark.exists)
            assert all(is_open(connection) for connection in asked), "both are still waited for"
            silent.close()
            stdout, _ = client.communicate(timeout=30)
    assert b"2/4 ready" in stdout
    assert client.returncode == 4


def accepted(port: socket.socket) -> socket.socket:
    port.settimeout(30)
    connection, _ = port.accept()
    return connection


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not closed it; what it has sent is taken."""
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while connection.recv(4096):
            pass
        return False
    return True


def test_a_silent_node_is_waited_for_as_long_as_was_asked_for(loopback_cluster: LoopbackCluster) -> None:
    for slot in range(4):
        loopback_cluster.install_agent(slot, report("ready"))
    loopback_cluster.stop(1)
    with socket.create_server(("127.0.17.2", loopback_cluster.port)):
        done = loopback_cluster.run("status", "--connect-timeout", "2")
    assert b"3/4 ready" in done.stdout
    waited = re.search(rb"takes connections but says nothing \(waited ([\d.]+) s\)", done.stdout)
    assert waited is not None, done.stdout.decode()
    assert float(waited[1]) <= 2, "the two seconds are for the whole way; a busy machine needs some of them before"
    assert done.returncode == 4


def test_env_names_the_file_that_cannot_be_read(loopback_cluster: LoopbackCluster) -> None:
    done = loopback_cluster.run("env", "--node", "1")
    assert done.returncode == 1, "this computer is no node, so it has no such file"
    assert b"train-1: cat: /etc/clusterctl/env: No such file" in done.stderr
