"""`forward`: which port is meant, the arguments of ssh, and what happens when the connection goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.ssh.single.forwarding import Ports, parse_ports
from clusterctl.ssh.single.system_ssh import login_argv
from clusterctl.ssh.target import target_of
from clusterctl_infra.errors import UsageError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


@pytest.mark.parametrize(
    ("text", "ports"), [("8888", Ports(here=8888, there=8888)), ("9999:8888", Ports(here=9999, there=8888))]
)
def test_one_number_is_the_port_on_both_sides(text: str, ports: Ports) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "0", "70000", "a", "1:2:3", ":8888", "8888:", "-1", "host:80"])
def test_what_is_no_port_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is no port"):
        parse_ports(text)


def test_ssh_opens_the_port_on_loopback_alone_and_no_shell(make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    target = target_of(inventory, inventory.nodes[0])
    argv = login_argv(target, key_file=None, known_hosts=Path("known"), forward="127.0.0.1:9:localhost:8")
    assert argv[argv.index("-L") + 1] == "127.0.0.1:9:localhost:8"
    assert "-N" in argv
    assert "ExitOnForwardFailure=yes" in argv
    assert argv[-1] == "ubuntu@10.0.8.0"
