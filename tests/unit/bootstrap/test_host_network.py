"""What NCCL is told on a host, which may have several networks, and InfiniBand."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # the changes of a plan

import pytest
from clusterctl_bootstrap.host_files import COMPUTED
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.host_network import infiniband_ports, on_host

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, routed, with_adapter

FACTS = {"slot_cidr": "10.1.0.5,10.1.9.7", "slot": 1, "fabric": "none"}
ASKED = ["ip", "-o", "addr", "show", "to", "10.1.9.7"]
LINE = "%d: %s    inet 10.1.9.7/%d brd 10.1.9.255 scope global noprefixroute %s\\       valid_lft forever"


def line(interface: str, *, number: int = 3, prefix: int = 24) -> str:
    return LINE % (number, interface, prefix, interface)


def values(root: Path, output: str, code: int = 0) -> dict[str, str]:
    outside = FakeOutside()
    outside.answer = lambda argv: (code, output) if argv == ASKED else None
    return {row.name: row.value for row in on_host(root, FACTS, outside)}


ANSWERS = {
    "not the default route's": (0, line("bond0.40"), "bond0.40"),
    "the first of several": (0, f"{line('ib0')}\n{line('ib1', number=4)}", "ib0"),
    "an address of the loopback, and a bridge's": (0, f"{line('lo', number=1, prefix=32)}\n{line('br0')}", "br0"),
    "the loopback alone": (0, line("lo", number=1, prefix=32), "ens32"),
    "no interface": (0, "", "ens32"),
    "no such program": (127, "[Errno 2] No such file or directory: 'ip'", "ens32"),
}


@pytest.mark.parametrize(("code", "output", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_the_interface_is_that_of_the_hosts_own_address_or_the_default_routes(
    tmp_path: Path, code: int, output: str, expected: str
) -> None:
    assert values(routed(tmp_path), output, code) == {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": f"={expected}",
        "GLOO_SOCKET_IFNAME": expected,
        "TP_SOCKET_IFNAME": expected,
    }


def test_a_host_without_a_default_route_has_an_interface(tmp_path: Path) -> None:
    assert values(tmp_path, line("ib0"))["GLOO_SOCKET_IFNAME"] == "ib0"


def test_infiniband_ports_are_named_exactly_and_no_others(tmp_path: Path) -> None:
    for name in ("mlx5_10", "mlx5_0", "mlx5_2"):
        with_adapter(tmp_path, name, "mlx5_core")
    with_adapter(tmp_path, "mlx5_bond_0", "mlx5_core", link_layer="Ethernet")
    with_adapter(tmp_path, "rdmap0s6", "efa", link_layer="Unspecified")
    assert infiniband_ports(tmp_path) == ["mlx5_0:1", "mlx5_2:1", "mlx5_10:1"]
    assert values(tmp_path, "")["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_2:1,mlx5_10:1"


SIX = {**FACTS, "slot_cidr": "fd00::5,fd00::7"}


def test_by_ipv6_the_interface_is_found_and_nccl_is_told_the_family(tmp_path: Path) -> None:
    outside = FakeOutside()
    output = "2: eno2    inet6 fd00::7/64 scope global \\       valid_lft forever preferred_lft forever"
    outside.answer = lambda argv: (0, output) if argv[-1] == "fd00::7" else None
    found = {row.name: row.value for row in on_host(tmp_path, SIX, outside)}
    assert (found["NCCL_SOCKET_IFNAME"], found["NCCL_SOCKET_FAMILY"]) == ("=eno2", "AF_INET6")


def test_a_host_s_sshd_takes_all_that_may_be_computed_there(tmp_path: Path) -> None:
    """sshd on hosts takes variables by name; the fabric of a host's plan is `none`, and so NCCL_NET is never set."""
    with_adapter(tmp_path, "mlx5_0", "mlx5_core")
    assert sorted(row.name for row in on_host(routed(tmp_path), SIX, FakeOutside())) == sorted(COMPUTED)


def test_a_booted_host_has_it_in_its_environment(tmp_path: Path) -> None:
    place: dict[str, Any] = {"slot_cidr": FACTS["slot_cidr"], "nodes": 2, "slot": 1, "rank": 1}
    root = routed(born(tmp_path, host_user="ubuntu", efa_interfaces=0, fabric="none", **place))
    with_adapter(root, "mlx5_0", "mlx5_core")
    outside = FakeOutside(addresses=("10.1.9.7",))
    outside.answer = lambda argv: (0, line("eno2")) if argv == ASKED else None
    assert boot(root, outside) == 0
    text = (root / "etc/clusterctl/nccl.env").read_text()
    assert "NCCL_SOCKET_IFNAME='=eno2'\n" in text
    assert "NCCL_IB_HCA='=mlx5_0:1'\n" in text
