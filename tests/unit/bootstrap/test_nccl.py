"""What NCCL is told: computed on the machine, exact, and little."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.nccl import adapters, computed, default_interface

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed, routed, with_adapter

HEAD = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
UP = "0003"
REJECT = "0201"


def route(interface: str, *, to: str = "00000000", mask: str = "00000000", flags: str = UP, metric: int = 0) -> str:
    return f"{interface}\t{to}\t0100000A\t{flags}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n"


ROUTES = {
    "one default route": (route("docker0", to="000011AC", mask="0000FFFF") + route("ens5"), "ens5"),
    "the lower metric": (route("ens6", metric=200) + route("ens5", metric=100), "ens5"),
    "a default route that refuses": (route("lo", flags=REJECT) + route("ens5", metric=9), "ens5"),
    "half of all addresses is no default route": (route("tun0", mask="00000080") + route("ens5"), "ens5"),
    "no default route": (route("docker0", to="000011AC", mask="0000FFFF"), ""),
    "no routes": ("", ""),
}


@pytest.mark.parametrize(("rows", "expected"), ROUTES.values(), ids=ROUTES)
def test_the_interface_is_that_of_the_default_route(rows: str, expected: str) -> None:
    assert default_interface(HEAD + rows) == expected


def values(root: Path, fabric: str = "efa") -> dict[str, str]:
    return {row.name: row.value for row in computed(root, {"fabric": fabric})}


def test_names_are_exact_in_each_readers_own_way(tmp_path: Path) -> None:
    assert values(routed(tmp_path)) == {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "=ens32",
        "GLOO_SOCKET_IFNAME": "ens32",
        "TP_SOCKET_IFNAME": "ens32",
    }


@pytest.mark.parametrize(("fabric", "expected"), [("required", "AWS Libfabric"), ("efa", None), ("none", None)])
def test_only_a_required_fabric_fails_instead_of_falling_back(
    tmp_path: Path, fabric: str, expected: str | None
) -> None:
    assert values(tmp_path, fabric).get("NCCL_NET") == expected


def test_efa_is_known_by_its_driver_and_gets_no_selection(tmp_path: Path) -> None:
    with_adapter(tmp_path, "rdmap0s6", "efa", link_layer="Unspecified")
    assert adapters(tmp_path) == {"rdmap0s6": "efa"}
    assert "NCCL_IB_HCA" not in values(tmp_path)


def test_a_persons_own_value_wins_in_every_file(tmp_path: Path) -> None:
    root = routed(born(tmp_path, env={"NCCL_DEBUG": "INFO"}))
    assert boot(root, FakeOutside()) == 0
    folder = root / "etc/clusterctl"
    for name in ("env", "nccl.env"):
        text = (folder / name).read_text()
        assert text.count("NCCL_DEBUG=") == 1
        assert "# yours, from env: in cluster.yaml, instead of ours\nNCCL_DEBUG='INFO'\n" in text
    assert "\nNCCL_DEBUG=INFO\n" in (folder / "env.list").read_text()


def test_a_push_computes_it_anew(tmp_path: Path) -> None:
    root = routed(born(tmp_path))
    boot(root, FakeOutside())
    (root / "proc/net/route").write_text(HEAD + route("enp39s0"))
    assert apply(root, pushed(), FakeOutside())["ok"]
    assert "GLOO_SOCKET_IFNAME='enp39s0'\n" in (root / "etc/clusterctl/env").read_text()
