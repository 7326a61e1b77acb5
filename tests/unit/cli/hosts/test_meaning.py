"""What a cluster of hosts comes to: its nodes, the files that each is given, and the membership's number."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl.home import Home
from clusterctl.hosts.meaning import NO_END, hosts_inventory, install_request, with_membership
from clusterctl.hosts.record import (
    HostsRecord,
    RecordedHost,
    forget_record,
    held,
    new_record,
    new_slots,
    read_record,
    wanted_record,
    write_record,
)
from clusterctl.ssh.openssh_config import ssh_config_text
from clusterctl.ssh.request import end_line
from clusterctl.ssh.target import proxy_argv, target_of
from clusterctl.text.headline import advice, ends, money
from clusterctl.text.next_commands import replace_slot
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.load_hosts import load_hosts
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.outputs import InventoryUnreadable, inventory_from_json, inventory_to_json

from tests.unit.infra.components.example_clusters import EXAMPLES, HOSTS, golden_file

FOLDER = EXAMPLES / HOSTS
BORN = datetime(2026, 11, 26, 6, tzinfo=UTC)


def config() -> HostsConfig:
    return load_hosts(FOLDER / "cluster.yaml", source="cluster.yaml").model_copy(update={"owner": "ada"})


def record(of: HostsConfig | None = None) -> HostsRecord:
    made = replace(new_record(of or config(), now=BORN), cluster_id="0123456789ab", seed="5e" * 32)
    return wanted_record(of or config(), made)


def request(slot: int, of: HostsConfig | None = None) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(install_request(of or config(), record(of), slot))
    return data


def listed() -> str:
    """Each file of the example's second host with its mode, those below a folder `ssh` with their content too."""
    lines = []
    for file in request(1)["files"]:
        lines.append(f"{file['path']} {file.get('permissions', '0644')}")
        if "/ssh/" in file["path"]:
            lines += [f"    {line}" for line in file["content"].splitlines()]
    return "\n".join(lines) + "\n"


def test_the_example_s_hosts_are_given_what_is_written_down() -> None:
    assert listed() == golden_file(HOSTS).read_text(encoding="utf-8"), f"if it is meant, write anew: {listed()}"


def test_a_host_is_told_its_place_the_addresses_and_that_nothing_ends_it() -> None:
    (birth,) = (json.loads(file["content"]) for file in request(1)["files"] if file["path"].endswith("birth.json"))
    assert (birth["slot"], birth["nodes"], birth["slot_cidr"]) == (1, 2, "10.1.0.5,10.1.0.6")
    assert (birth["user"], birth["is_host"], birth["deadline"]) == ("ada", True, "2099-12-31T23:59:59Z")


def test_no_secret_is_in_a_representation_and_none_is_readable_by_others() -> None:
    secret = {"/etc/clusterctl/ssh_key", "/etc/clusterctl/barrier"}
    assert {file["path"] for file in request(0)["files"] if file.get("permissions") == "0600"} == secret
    assert record().seed not in repr(record())


def test_sshd_takes_the_cluster_s_variables_and_no_others() -> None:
    sent = request(0, config().model_copy(update={"env": {"GREETING": "hi"}}))
    assert {"MASTER_ADDR", "GREETING", "NCCL_IB_HCA"} <= set(sent["environment"])
    assert "LD_PRELOAD" not in sent["environment"]
    assert sent["addresses"] == ["10.1.0.5", "10.1.0.6"]


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "GIT_SSH_COMMAND", "HOME"]
)
def test_sshd_never_takes_what_changes_which_programs_run(name: str) -> None:
    names = request(0, config().model_copy(update={"env": {name: "x", "MY_PATH": "y"}}))["environment"]
    assert name not in names
    assert "MY_PATH" in names


def test_the_membership_s_number_grows_with_its_content_alone() -> None:
    first = with_membership(config(), record())
    assert first.generation == 1
    assert with_membership(config(), first) == first
    other = config().model_copy(update={"env": {"A": "b"}})
    assert with_membership(other, first).generation == 2


def test_a_host_that_is_taken_out_leaves_and_one_that_comes_back_does_not() -> None:
    both = record()
    shorter = config().model_copy(update={"hosts": config().hosts[1:]})
    after = wanted_record(shorter, both)
    assert (after.hosts, after.leaving) == (both.hosts[1:], both.hosts[:1])
    assert wanted_record(config(), after) == both


def test_a_host_with_another_address_is_no_new_node() -> None:
    """So an install that fails does not clean it: its host key says that it was a node before."""
    before = record()
    first, second = before.hosts
    moved = replace(before, hosts=(replace(first, address="gpu-a.example.com", private_ip="10.2.0.5"), second))
    assert new_slots(before, moved) == ()
    other = replace(before, hosts=(replace(first, host_key="ssh-ed25519 B"), second))
    assert new_slots(before, other) == (0,)
    assert new_slots(None, before) == (0, 1)


def test_the_inventory_survives_its_file_and_has_no_end_but_the_reminder() -> None:
    inventory = hosts_inventory(config(), record(), folder=FOLDER)
    assert inventory_from_json(json.loads(json.dumps(inventory_to_json(inventory))), source="x") == inventory
    assert (inventory.cluster, inventory.is_hosts) == (f"{HOSTS}@hosts", True)
    assert datetime.fromisoformat(inventory.deadline) == NO_END
    assert inventory.advisory_end == (BORN + timedelta(days=7)).isoformat()
    assert ends(inventory, BORN) == "nothing ends hosts"
    assert end_line(inventory, BORN) is None
    assert replace_slot(inventory.cluster, 1).startswith("clusterctl status --cluster two-infiniband-hosts@hosts")
    assert money(inventory, None) == "cost unknown"
    assert "is meant to last until" in advice(inventory, BORN)[1]
    assert "was meant to end at" in advice(inventory, BORN + timedelta(days=8))[1]


def test_an_inventory_of_aws_is_written_as_before(make_inventory: Any) -> None:
    assert "advisory_end" not in inventory_to_json(make_inventory(size=1))


def test_a_record_is_read_as_it_was_written_and_one_that_cannot_be_is_told(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    assert read_record(HOSTS, home) is None
    kept = replace(record(), leaving=(RecordedHost(address="a", private_ip="10.0.0.1", host_key="ssh-ed25519 A"),))
    write_record(kept, home)
    assert read_record(HOSTS, home) == kept
    file = tmp_path / "hosts" / f"{HOSTS}.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(file.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(ClusterctlError, match="version 2; this clusterctl reads version 1"):
        read_record(HOSTS, home)
    file.write_text("{")
    with pytest.raises(ClusterctlError, match="all that is known of"):
        read_record(HOSTS, home)


def with_storage() -> HostsConfig:
    tree: dict[str, Any] = {"target": "hosts", "name": "x", "hosts": ["10.1.0.5"], "ssh": {"user": "ada"}}
    tree["storage"] = [
        {"mount": "/data", "nfs": {"source": "10.1.0.9:/export", "options": "hard", "writable": False}},
        {"mount": "/fast", "lustre": {"source": "10.1.0.20@tcp:/fs"}},
    ]
    more = HostsConfig.model_validate(tree)
    script = more.model_validate({**tree, "scripts": ["setup.sh"]}).scripts[0].with_content("#!/bin/sh\n")
    return config().model_copy(update={"storage": more.storage, "packages": ("nfs-common",), "scripts": (script,)})


def test_a_host_is_told_what_to_mount_install_and_run() -> None:
    sent = request(0, with_storage())
    (birth,) = (json.loads(file["content"]) for file in sent["files"] if file["path"].endswith("birth.json"))
    nfs, lustre = birth["mounts"]
    assert (nfs["path"], nfs["source"], nfs["options"], nfs["writable"]) == ("/data", "10.1.0.9:/export", "hard", False)
    assert (lustre["kind"], lustre["types"], lustre["options"]) == ("lustre", ["lustre", "lustre"], "flock")
    assert (birth["packages"], birth["scripts"]) == (["nfs-common"], [["setup.sh", "once", "before-ready"]])
    (script,) = (file for file in sent["files"] if file["path"] == "/var/lib/clusterctl/scripts/setup.sh")
    assert (script["permissions"], script["content"]) == ("0700", "#!/bin/sh\n")
    assert sent["mounts"] == {"/data": "nfs 10.1.0.9:/export hard ro", "/fast": "lustre 10.1.0.20@tcp:/fs flock rw"}


def elsewhere() -> HostsConfig:
    """The second host's SSH server is at port 2222 for this computer, and at 2200 for the other host."""
    first, second = config().hosts
    moved = second.model_copy(update={"port": 2222, "private_port": 2200})
    return config().model_copy(update={"hosts": (first, moved)})


def content(sent: dict[str, Any], end: str) -> str:
    (found,) = (file["content"] for file in sent["files"] if file["path"].endswith(end))
    return str(found)


def test_a_port_of_a_host_is_where_ssh_goes_from_here_and_from_the_others() -> None:
    inventory = hosts_inventory(elsewhere(), record(elsewhere()), folder=FOLDER)
    assert [target_of(inventory, node).place for node in inventory.nodes] == ["10.1.0.5:22", "10.1.0.6:2222"]
    sent = request(0, elsewhere())
    assert content(sent, "/known_hosts").splitlines()[1].startswith(f"[{HOSTS}-1]:2200,[10.1.0.6]:2200 ssh-ed25519 ")
    settings = content(sent, "/ssh_config.d/00-clusterctl.conf").splitlines()
    assert settings[:2] == [f'Match localuser "ada" originalhost {HOSTS}-1,10.1.0.6', "Port 2200"]
    assert settings[2].startswith(f'Match localuser "ada" originalhost {HOSTS}-0,10.1.0.5,{HOSTS}-1,')
    assert sent["port"] == 22
    assert "ssh_port" not in json.loads(content(sent, "birth.json"))
    assert (
        request(1, elsewhere())["port"]
        == json.loads(content(request(1, elsewhere()), "birth.json"))["ssh_port"]
        == 2200
    )


def test_a_port_survives_the_files_that_this_computer_keeps(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    write_record(record(elsewhere()), home)
    assert read_record(record().name, home) == record(elsewhere())
    inventory = hosts_inventory(elsewhere(), record(elsewhere()), folder=FOLDER)
    rows = json.loads(json.dumps(inventory_to_json(inventory)))
    assert inventory_from_json(rows, source="x") == inventory
    assert ["port" in row for row in rows["nodes"]] == [False, True], "inventories of AWS stay as they were"
    rows["nodes"][1]["port"] = 70_000
    with pytest.raises(InventoryUnreadable, match=r"nodes\[1\].port is 70000, not a port"):
        inventory_from_json(rows, source="x")


def test_hosts_of_ipv6_are_told_so() -> None:
    hosts = tuple(
        host.model_copy(update={"address": f"fd00::{index}"}) for index, host in enumerate(config().hosts, 10)
    )
    six = config().model_copy(update={"hosts": hosts})
    assert json.loads(content(request(0, six), "birth.json"))["slot_cidr"] == "fd00::10,fd00::11"
    alone = six.model_copy(update={"hosts": hosts[:1]})
    assert json.loads(content(request(0, alone), "birth.json"))["slot_cidr"] == "fd00::10/128"
    inventory = hosts_inventory(six, record(six), folder=FOLDER)
    assert target_of(inventory, inventory.nodes[0]).place == "[fd00::10]:22"


def test_an_order_of_ranks_is_told_once_kept_in_the_record_and_gone_with_its_setting(tmp_path: Path) -> None:
    topology = config().model_copy(update={"ranks": "topology"})
    both = record(topology)
    first = with_membership(topology, replace(both, hosts=(*both.hosts, *both.hosts[1:])))
    ordered = with_membership(topology, replace(first, ranks=(0, 2, 1)))
    assert (first.generation, ordered.generation) == (1, 2)
    assert with_membership(topology, ordered) == ordered
    assert [node.rank for node in hosts_inventory(topology, ordered, folder=FOLDER).nodes] == [0, 2, 1]
    home = Home(path=tmp_path)
    write_record(ordered, home)
    assert read_record(HOSTS, home) == ordered
    shorter = wanted_record(topology, ordered)
    assert (shorter.ranks, len(shorter.hosts)) == ((0, 1), 2)
    assert wanted_record(config(), ordered).ranks == ()
    file = tmp_path / "hosts" / f"{HOSTS}.json"
    file.write_text(file.read_text().replace('"ranks": [\n  0,', '"ranks": [\n  1,'))
    with pytest.raises(ClusterctlError, match="which is not one rank for each slot"):
        read_record(HOSTS, home)


def test_a_bastion_leads_to_ipv6_addresses_and_other_ports_too() -> None:
    behind = config().model_copy(update={"ssh": config().ssh.model_copy(update={"bastion": "ada@door"})})
    inventory = hosts_inventory(behind, record(), folder=FOLDER)
    argv = proxy_argv(inventory, inventory.nodes[0], host="fd00::5", port=2222)
    assert argv is not None
    assert (argv[:3], argv[-1]) == (("ssh", "-W", "[fd00::5]:2222"), "ada@door")


def test_what_is_done_on_hosts_is_remembered_so_that_a_change_is_asked_about(tmp_path: Path) -> None:
    nothing, work = record(), record(with_storage())
    assert nothing.work == ""
    write_record(work, Home(path=tmp_path))
    assert read_record(work.name, Home(path=tmp_path)) == work
    (script,) = with_storage().scripts
    other = script.with_content("#!/bin/sh\nfalse\n")
    changes: list[dict[str, Any]] = [{"packages": ("htop",)}, {"storage": ()}, {"scripts": (other,)}]
    others = {record(with_storage().model_copy(update=change)).work for change in changes}
    assert len(others - {"", work.work}) == 3


def test_whoever_forgets_a_cluster_leaves_its_lock_so_that_nobody_else_has_it_too(tmp_path: Path) -> None:
    """A lock file that is deleted while it is held could be made anew, and then held by two."""
    home = Home(path=tmp_path)
    write_record(record(), home)
    with held(record().name, home, verb="down"):
        forget_record(record().name, home)
        assert read_record(record().name, home) is None
        with pytest.raises(UsageError, match="another clusterctl changes"), held(record().name, home, verb="up"):
            pass
    with held(record().name, home, verb="up"):
        pass


def test_the_bastion_and_a_person_s_own_ssh_go_to_the_port_too() -> None:
    ssh = elsewhere().ssh.model_copy(update={"bastion": "ada@bastion.example.com"})
    inventory = hosts_inventory(elsewhere().model_copy(update={"ssh": ssh}), record(elsewhere()), folder=FOLDER)
    way = target_of(inventory, inventory.nodes[1]).proxy_argv
    assert way is not None
    assert way[:3] == ("ssh", "-W", "[10.1.0.6]:2222")
    text = ssh_config_text(inventory, key_file=None, known_hosts=Path("known_hosts"))
    assert f"Host {HOSTS}-1\n    HostName 10.1.0.6\n    Port 2222\n" in text
    assert "ProxyCommand ssh -W '[%h]:%p' " in text
