"""Connections that are begun before anybody waits for them, against a real sshd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.dialling import dialled
from clusterctl.ssh.fanout.fan_out import run_remote
from clusterctl.ssh.fanout.shared_command import OpenLinks
from clusterctl.ssh.keys.login_keys import LoginKeys, key_in_file
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.target import target_of

from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster


def test_a_run_goes_over_the_connections_that_were_dialled_and_closes_the_others(
    loopback_cluster: LoopbackCluster,
) -> None:
    inventory = loopback_cluster.inventory
    under_way = dialled(inventory, inventory.nodes)
    server = loopback_cluster.servers[1].pid
    children = Path(f"/proc/{server}/task/{server}/children")
    assert comes_true(lambda: children.read_text() != "")
    loopback_cluster.stop(1)  # who dials it now is refused
    keys = LoginKeys(keys=(key_in_file(loopback_cluster.folder / "login"),), described="the test's key")
    remote = RemoteCommand(
        inventory=inventory,
        nodes=inventory.nodes[1:2],
        command=Command(line="echo here"),
        keys=keys,
        deadlines=Deadlines(),
    )
    (result,) = run_remote(remote, links=OpenLinks(dialled=under_way)).values()
    assert (result.stdout, result.failure) == (b"here\n", None)
    assert [under_way.take(target_of(inventory, node)) for node in inventory.nodes] == [None] * 4
