"""The agent's way from a machine to a node, on a machine that exists only in the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.boot import ADDRESS_TIMEOUT_S, LOGIN_TIMEOUT_S, boot
from clusterctl_bootstrap.node.status import line
from clusterctl_bootstrap.node.writing import hosts_text

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed, status


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return born(tmp_path, with_systemd=True)


def contract(root: Path) -> dict[str, str]:
    files = [*(root / "etc").rglob("*"), *(root / "home").rglob("*")]
    return {str(path): path.read_text() for path in files if path.is_file() and path.name != "status.json"}


def test_all_phases_are_passed_and_recorded(root: Path) -> None:
    assert boot(root, FakeOutside()) == 0
    seen = status(root)
    assert [row["phase"] for row in seen["history"]] == [
        "network",
        "identity",
        "environment",
        "fabric",
        "guard",
        "trust",
        "login",
        "packages",
        "scripts before mounts",
        "mount clients",
        "mounts",
        "shared files",
        "scripts",
        "ready",
    ]
    assert (seen["phase"], seen["error"], seen["generation"]) == ("ready", None, 0)
    assert (seen["boot_id"], seen["agent"]) == ("first-boot", "0123456789ab")
    assert seen["deadline"] == "2026-12-01T18:30:00Z"


@pytest.mark.parametrize(("value", "is_logged"), [("first line\nsecond line", True), ("a line", False)])
def test_the_log_names_what_is_left_out_of_env_list_and_says_nothing_where_all_is_in_it(
    tmp_path: Path, value: str, is_logged: bool
) -> None:
    root = born(tmp_path, with_systemd=True, slot=0, rank=0, nodes=1)
    (root / "var/lib/clusterctl/cluster.json").write_text(pushed(nodes=1, env={"NOTES": value}))
    assert boot(root, FakeOutside(addresses=("10.0.8.0",))) == 0
    log = (root / "var/log/clusterctl.log").read_text()
    assert ("left out of env.list, as the value has a newline: NOTES\n" in log) is is_logged
    assert ("left out" in log) is is_logged


def test_the_contract_is_written(root: Path) -> None:
    boot(root, FakeOutside())
    node = json.loads((root / "etc/clusterctl/node.json").read_text())
    assert (node["name"], node["private_ip"], node["master_addr"]) == ("train-2", "10.0.8.2", "10.0.8.0")
    assert (root / "etc/clusterctl/hostfile").read_text().splitlines() == [f"train-{slot} slots=8" for slot in range(4)]
    hosts = (root / "etc/hosts").read_text().splitlines()
    assert hosts[0] == "127.0.0.1 localhost"
    by_slot = [f"10.0.8.{slot} train-{slot}" for slot in range(4)]
    by_rank = [f"10.0.8.{slot} train-{slot}.nodes.clusterctl.svc.cluster.local" for slot in range(4)]
    assert [row for row in hosts if row.startswith("10.")] == by_slot + by_rank


def test_ranks_of_many_nodes_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    root = born(tmp_path, nodes=256)
    boot(root, FakeOutside())
    names = (root / "etc/clusterctl/hostfile").read_text().split()[::2]
    assert names == [f"train-{slot}" for slot in range(256)]


def test_the_hostfile_has_as_many_slots_as_processes(tmp_path: Path) -> None:
    root = born(tmp_path, env={"NPROC_PER_NODE": "2"})
    boot(root, FakeOutside())
    assert (root / "etc/clusterctl/hostfile").read_text().splitlines() == [f"train-{slot} slots=2" for slot in range(4)]


def test_a_second_boot_writes_the_same(root: Path) -> None:
    boot(root, FakeOutside())
    before = contract(root)
    assert boot(root, FakeOutside()) == 0
    assert contract(root) == before


def test_a_second_boot_keeps_what_was_pushed(root: Path) -> None:
    boot(root, FakeOutside())
    apply(root, pushed(), FakeOutside())
    (root / "run/clusterctl/boot-id").write_text("second-boot\n")
    assert json.loads(line(root))["phase"] == "booting", "what the first boot said does not hold any more"
    assert boot(root, FakeOutside()) == 0
    assert (status(root)["generation"], status(root)["boot_id"]) == (3, "second-boot")
    assert "NNODES='6'\n" in (root / "etc/clusterctl/env").read_text()


def test_a_users_own_lines_in_hosts_stay(root: Path) -> None:
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 train-2\n192.0.2.1 licence-server\n")
    boot(root, FakeOutside())
    apply(root, pushed(), FakeOutside())
    rows = (root / "etc/hosts").read_text().splitlines()
    aside = "# clusterctl: put aside: 127.0.1.1 train-2"
    assert rows[:3] == ["127.0.0.1 localhost", aside, "192.0.2.1 licence-server"]
    assert [row for row in rows if row.endswith(" train-2")] == [aside, "10.0.8.2 train-2"]
    assert sum(row.startswith("#") for row in rows) == 3


def test_a_line_that_was_put_aside_comes_back_when_its_name_is_no_node_s() -> None:
    text = "127.0.0.1 localhost\n127.0.1.1 train-2.example.com train-2\n"
    aside = hosts_text(text, {"train-2": "10.0.8.2"})
    assert "\n127.0.1.1" not in aside
    assert hosts_text(aside, {"train-2": "10.0.8.2"}) == aside
    assert hosts_text(aside, {"train-0": "10.0.8.0"}).startswith(text)


def failed_in(root: Path, outside: FakeOutside) -> tuple[str, str]:
    assert boot(root, outside) == 1
    seen = status(root)
    assert seen["phase"] == "failed"
    assert any(seen["error"]["message"] in row for row in seen["error"]["log"])
    return seen["error"]["phase"], seen["error"]["message"]


def test_a_machine_with_another_slots_address_says_so(root: Path) -> None:
    outside = FakeOutside(addresses=("10.0.8.3",))
    assert failed_in(root, outside) == ("network", f"after {ADDRESS_TIMEOUT_S} s: no interface has 10.0.8.2: ip addr")
    assert outside.slept_s == pytest.approx(ADDRESS_TIMEOUT_S, abs=0.5)


def test_a_machine_without_sshd_is_waited_for_in_bounds(root: Path) -> None:
    outside = FakeOutside(banner="Connection refused")
    phase, message = failed_in(root, outside)
    assert (phase, "Connection refused" in message) == ("login", True)
    assert outside.slept_s == pytest.approx(LOGIN_TIMEOUT_S, abs=0.5)


def test_a_machine_that_lets_nobody_in_yet_is_not_ready(root: Path) -> None:
    (root / "run/nologin").write_text("")
    phase, message = failed_in(root, FakeOutside())
    assert (phase, "/run/nologin" in message) == ("login", True)


def test_a_refused_metadata_rule_fails_the_node_with_the_reason(root: Path) -> None:
    (root / "run/clusterctl/imds").write_text("failed: nft is missing; the image needs the package nftables\n")
    phase, message = failed_in(root, FakeOutside())
    assert (phase, "nft is missing" in message) == ("guard", True)


def test_a_deadline_that_is_not_armed_fails_the_node(root: Path) -> None:
    outside = FakeOutside()
    outside.codes = {"clusterctl-deadline.timer": 3, "clusterctl-deadline-clock.timer": 3}
    phase, message = failed_in(root, outside)
    assert (phase, "not armed" in message) == ("guard", True)
    assert ["/bin/sh", str(root / "run/clusterctl/guard")] in outside.commands, "it was tried once more"


def test_a_process_machine_has_no_guards_of_its_own(tmp_path: Path) -> None:
    root, outside = born(tmp_path), FakeOutside()
    assert boot(root, outside) == 0
    assert outside.commands == []


def test_a_failure_of_the_rehearsal_is_marked_as_one(root: Path) -> None:
    (root / "var/lib/clusterctl/simulated-failure").write_text("no EFA\n")
    assert failed_in(root, FakeOutside()) == ("identity", "no EFA (simulated: a fault of the rehearsal)")


@pytest.mark.parametrize(("name", "text"), [("birth.json", "{"), ("cluster.json", '{"generation": "3"}')])
def test_a_broken_file_is_named(root: Path, name: str, text: str) -> None:
    (root / "var/lib/clusterctl" / name).write_text(text)
    phase, message = failed_in(root, FakeOutside())
    assert (phase, name in message) == ("network", True)


def test_a_machine_without_the_login_user_says_so(root: Path) -> None:
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    phase, message = failed_in(root, FakeOutside())
    assert (phase, "ubuntu" in message) == ("environment", True)


def test_a_host_is_a_node_without_guards_by_its_own_address_and_its_own_user(tmp_path: Path) -> None:
    place = {"slot_cidr": "10.1.0.5,10.1.9.7", "nodes": 2, "slot": 1, "rank": 1}
    root = born(tmp_path, with_systemd=True, host_user="ada", efa_interfaces=0, fabric="none", **place)
    for name in ("guard", "imds"):
        (root / "run/clusterctl" / name).unlink()
    (root / "etc/passwd").write_text("ada:x:1000:1001::/home/ada:/bin/bash\n")
    (root / "home/ada").mkdir()
    outside = FakeOutside(addresses=("10.1.9.7",))
    assert boot(root, outside) == 0, (root / "var/log/clusterctl.log").read_text()
    assert "MASTER_ADDR=10.1.0.5\n" in (root / "home/ada/.ssh/environment").read_text()
    assert "10.1.9.7 train-1\n" in (root / "etc/hosts").read_text()
    addresses = pushed(nodes=3, slot_cidr="10.1.0.5,10.1.9.7,10.1.0.6")
    assert apply(root, addresses, outside)["ok"]
    assert "10.1.0.6 train-2\n" in (root / "etc/hosts").read_text()
    assert not any("guard" in word for argv in outside.commands for word in argv), "nothing is armed that ends a host"
    too_few = pushed(nodes=4, generation=9, slot_cidr="10.1.0.5,10.1.9.7")
    assert not apply(root, too_few, outside)["ok"], "an address is missing"
