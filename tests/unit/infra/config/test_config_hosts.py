"""cluster.yaml with `target: hosts`: what it may say, and everything that is wrong with it at once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from pathlib import Path

import pytest
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.known_hosts import host_key_in
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.config.load_hosts import load_hosts
from clusterctl_infra.config.target import is_for_hosts
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.keys import host_key

KEYS = [host_key(bytes(32), slot).public for slot in range(3)]
DECLARED = "".join(f"10.1.0.{slot} {key}\n" for slot, key in enumerate(KEYS))
PAGE = Path(__file__).parents[4] / "docs" / "hosts.md"
LEAST = "target: hosts\nname: lab\nhosts: [10.1.0.0, 10.1.0.1]\nssh: {user: ada, known_hosts: known_hosts}\n"


def loaded(folder: Path, text: str, known: str = DECLARED) -> HostsConfig:
    (folder / "cluster.yaml").write_text(text)
    (folder / "known_hosts").write_text(known)
    return load_hosts(folder / "cluster.yaml", source="lab/cluster.yaml")


def problems(folder: Path, text: str, known: str = DECLARED) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text, known)
    return [line.strip() for line in caught.value.problems]


def test_a_text_is_short_for_an_address_and_its_key_comes_from_the_file_that_is_named(tmp_path: Path) -> None:
    config = loaded(tmp_path, LEAST)
    assert [host.host_key for host in config.hosts] == [" ".join(key.split()[:2]) for key in KEYS[:2]]
    assert config.private_ips == ("10.1.0.0", "10.1.0.1")
    assert (config.gpus_per_node, config.gpu_name, config.owner is not None) == (0, None, True)


def test_a_name_needs_the_address_by_which_the_others_reach_it(tmp_path: Path) -> None:
    row = f"{{address: gpu-a.example.com, host_key: {KEYS[0]}}}"
    text = f"target: hosts\nname: lab\nhosts: [{row}]\nssh: {{user: ada}}\n"
    (problem,) = problems(tmp_path, text)
    assert "hosts[0].address: 'gpu-a.example.com': a name, so write private_ip" in problem
    named = text.replace("host_key", "private_ip: 10.1.0.7, host_key")
    assert loaded(tmp_path, named).private_ips == ("10.1.0.7",)


def test_the_examples_of_the_page_are_one_file_that_is_valid(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    (tmp_path / "lab").write_text("a key")
    text = "".join(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    text = text.replace("ssh-ed25519 AAAA…", KEYS[1]).replace("~/.ssh/", "")
    config = loaded(tmp_path, text, f"10.1.0.5 {KEYS[0]}\n[203.0.113.9]:2203 {KEYS[2]}\n")
    assert config.private_ips == ("10.1.0.5", "10.1.0.6", "10.1.0.7")
    assert [row.mount for row in config.storage] == ["/shared", "/scratch"]


def test_gpus_are_a_number_or_a_name_with_it(tmp_path: Path) -> None:
    assert loaded(tmp_path, LEAST + "gpus: h100:8\n").gpu_name == "H100"
    assert loaded(tmp_path, LEAST + "gpus: 8\n").gpus_per_node == 8
    assert "write how many GPUs" in problems(tmp_path, LEAST + "gpus: h100\n")[0]


def test_a_host_without_a_declared_key_is_refused_and_never_trusted_on_first_use(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, LEAST, DECLARED.splitlines()[0] + "\n")
    assert "hosts[1]: 10.1.0.1: ssh.known_hosts has no key of it" in problem
    assert "ssh-keyscan -t ed25519 10.1.0.1" in problem
    (problem, _) = problems(tmp_path, LEAST.replace(", known_hosts: known_hosts", ""))
    assert "no host_key is declared" in problem


def test_a_known_hosts_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, LEAST.replace("known_hosts: known_hosts", "known_hosts: nowhere"))
    assert "ssh.known_hosts: 'nowhere': cannot be read: No such file or directory" in problem


def test_a_private_key_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, LEAST.replace("user: ada", "user: ada, key_file: nowhere"))
    assert "ssh.key_file: 'nowhere': no such file" in problem


def test_what_only_nodes_with_buckets_have_says_so(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"{LEAST}workflow_storage: []\n")
    assert "workflow_storage: " in problem
    assert "it needs a bucket that nodes mount" in problem


def test_keys_of_aws_and_caps_are_refused_all_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path, LEAST + "region: us-west-2\nnodes: 2\ncaps: {budget_usd: 10, runtime: 2h}\nfabric: efa\n"
    )
    assert len(found) == 4
    assert any("region: for clusters on AWS only" in line for line in found)
    assert any("nodes: the list hosts says how many" in line for line in found)
    assert any("caps.budget_usd: nothing ends machines that are not clusterctl's" in line for line in found)
    assert any("fabric: 'efa': allowed are auto, infiniband" in line for line in found)


def test_two_hosts_cannot_be_one(tmp_path: Path) -> None:
    found = problems(tmp_path, LEAST.replace("10.1.0.1]", "10.1.0.0]"))
    assert any("'10.1.0.0': 2 hosts have it as their address" in line for line in found)


def test_two_hosts_with_one_host_key_are_refused(tmp_path: Path) -> None:
    """They are clones of one machine whose host keys were not made anew."""
    key = KEYS[0]
    (problem,) = problems(tmp_path, LEAST, f"10.1.0.0 {key}\n10.1.0.1 {key} clone\n")
    assert "hosts[1]: " in problem
    assert "2 hosts have it as their host key" in problem
    hosts = f"[{{address: 10.1.0.0, host_key: {key}}}, {{address: 10.1.0.1, host_key: {key}}}]"
    (problem,) = problems(tmp_path, LEAST.replace("[10.1.0.0, 10.1.0.1]", hosts))
    assert "2 hosts have it as their host key" in problem


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("'10.1.0.0:2222'", "not an address; IPv6 has no brackets here, and a port is a key of its own: port: 2222"),
        ("'[fd00::1]:22'", "not an address; IPv6 has no brackets here"),
        ("'fe80::1'", "a link-local address"),
        ("'::ffff:10.1.0.5'", "an IPv4 address written as IPv6; write 10.1.0.5"),
        ("'::1'", "an address that leads to no other machine"),
        ("10.1.0", "not an IPv4 address"),
        ("-x", "not an IP address or a host's name"),
        ("{address: 10.1.0.0, private_ip: gpu-a}", "not an IP address such as"),
        ("{address: 10.1.0.0, port: 65536}", "'65536': not a port, which is a number from 1 to 65535"),
        ("{address: 10.1.0.0, private_port: 0}", "'0': not a port"),
        ("{address: 10.1.0.0, hostkey: x}", "unknown key (did you mean host_key?)"),
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, row: str, why: str) -> None:
    assert why in problems(tmp_path, LEAST.replace("[10.1.0.0, 10.1.0.1]", f"[{row}]"))[0]


def test_the_loader_for_aws_says_who_does_hosts(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(LEAST)
    assert is_for_hosts(tmp_path / "cluster.yaml")
    with pytest.raises(ConfigError) as caught:
        load_cluster(tmp_path / "cluster.yaml")
    assert any("target: 'hosts': Pulumi does not make hosts nodes" in line for line in caught.value.problems)


def test_a_target_that_is_none_is_told_which_there_are(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(LEAST.replace("target: hosts", "target: gcp"))
    with pytest.raises(ConfigError) as caught:
        load_cluster(tmp_path / "cluster.yaml")
    assert any("target: 'gcp': not a target: write aws or hosts" in line for line in caught.value.problems)


def test_a_hashed_name_a_pattern_and_the_best_kind_of_key_are_found() -> None:
    salt = bytes(range(20))
    digest = hmac.new(salt, b"gpu-a", hashlib.sha1).digest()
    hashed = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    assert host_key_in(f"{hashed} ssh-ed25519 AAAA\n", "gpu-a") == "ssh-ed25519 AAAA"
    assert host_key_in(f"{hashed} ssh-ed25519 AAAA\n", "gpu-b") is None
    text = "# a comment\ngpu-*,!gpu-b ssh-rsa RRRR\ngpu-a ssh-ed25519 EEEE\n"
    assert host_key_in(text, "gpu-a") == "ssh-ed25519 EEEE"
    assert host_key_in(text, "gpu-b") is None
    assert host_key_in("[gpu-a]:22 ssh-rsa RRRR\n", "gpu-a") == "ssh-rsa RRRR"
    assert host_key_in("[gpu-a]:2222 ssh-rsa RRRR\n", "gpu-a") is None


def test_a_revoked_key_is_nobody_s_and_an_authority_declares_none() -> None:
    assert host_key_in("gpu-a ssh-ed25519 EEEE\n@revoked * ssh-ed25519 EEEE\n", "gpu-a") is None
    assert host_key_in("@cert-authority * ssh-ed25519 EEEE\n", "gpu-a") is None


def test_storage_is_nfs_and_lustre_by_address(tmp_path: Path) -> None:
    rows = "storage:\n- {mount: /data, nfs: {source: '10.1.0.9:/export', options: 'nfsvers=4.2', writable: false}}\n"
    nfs, lustre = loaded(tmp_path, f"{LEAST}{rows}- {{mount: /fast, lustre: {{source: 'a@o2ib,b@tcp:/fs'}}}}\n").storage
    assert (nfs.kind, nfs.behind.options, nfs.behind.writable) == ("nfs", "nfsvers=4.2", False)
    assert (lustre.kind, lustre.behind.options, lustre.behind.writable) == ("lustre", "flock", True)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("{mount: /a}", "storage[0]: name exactly one of nfs, lustre"),
        ("{mount: /etc/a, nfs: {source: 'x:/a'}}", "/etc belongs to the system"),
        ("{mount: /a, efs: {}}", "storage[0].efs: unknown key"),
        ("{mount: /a, nfs: {source: /export}}", "storage[0].nfs.source: '/export': not a server and a path"),
        ("{mount: /a, nfs: {source: 'x:/a b'}}", "not a server and a path"),
        ("{mount: /a, nfs: {source: 'fd00::5:/a'}}", "not a server and a path"),
        ("{mount: /a, lustre: {source: '10.1.0.20:/fs'}}", "not a management server with its network"),
        ("{mount: /a, nfs: {source: 'x:/a', options: 'hard,ro'}}", "ro: write writable: false instead"),
        ("{mount: /a, nfs: {source: 'x:/a', options: 'hard, intr'}}", "not options of mount with commas between"),
        ("{mount: /a, nfs: {source: 'x:/a'}}, {mount: /a, nfs: {source: 'x:/b'}}", "storage[1].mount: '/a': mounted"),
        ("{mount: /a, nfs: {source: 'x:/a'}}, {mount: /b, nfs: {source: 'x:/a'}}", "'x:/a': mounted at /a already"),
    ],
)
def test_storage_that_cannot_be_mounted_is_named(tmp_path: Path, row: str, sentence: str) -> None:
    (problem,) = problems(tmp_path, f"{LEAST}storage: [{row}]\n")
    assert sentence in problem


def test_scripts_of_hosts_are_read_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    config = loaded(tmp_path, f"{LEAST}packages: [nfs-common]\nscripts: [setup.sh]\n")
    assert (config.packages, config.scripts[0].content) == (("nfs-common",), "#!/bin/sh\n")
    found = problems(tmp_path, f"{LEAST}scripts: [setup.sh, away.sh, other/setup.sh]\n")
    assert any("scripts[1]: 'away.sh': no such file" in line for line in found)
    assert any("scripts[2]: 'other/setup.sh': setup.sh has the same name" in line for line in found)


def test_a_port_is_part_of_where_a_host_is_and_of_how_its_key_is_declared(tmp_path: Path) -> None:
    hosts = (
        "[{address: 10.1.0.9, port: 2201, private_ip: 10.1.0.1}, {address: 10.1.0.9, port: 2202, private_ip: 10.1.0.2}]"
    )
    known = f"[10.1.0.9]:2201 {KEYS[0]}\n[10.1.0.*]:2202 {KEYS[1]}\n"
    config = loaded(tmp_path, LEAST.replace("[10.1.0.0, 10.1.0.1]", hosts), known)
    assert [host.host_key for host in config.hosts] == [" ".join(key.split()[:2]) for key in KEYS[:2]]
    found = problems(tmp_path, LEAST.replace("[10.1.0.0, 10.1.0.1]", hosts), known.splitlines()[0])
    assert "10.1.0.9:2202: ssh.known_hosts has no key of it" in found[0]
    assert "ssh-keyscan -p 2202 -t ed25519 10.1.0.9" in found[0]
    same = hosts.replace("2202", "2201")
    found = problems(tmp_path, LEAST.replace("[10.1.0.0, 10.1.0.1]", same), known)
    assert any("'10.1.0.9:2201': 2 hosts have it as their address" in line for line in found)


@pytest.mark.parametrize(
    ("known", "port", "found"),
    [
        ("[h]:2222", 2222, True),
        ("[h]:2222", 22, False),
        ("[h]:22", 22, True),
        ("[h]:2223", 2222, False),
        ("h", 2222, True),
        ("h,![h]:2222", 2222, True),
        ("[*]:2222,![h]:2222", 2222, False),
    ],
)
def test_a_key_is_declared_for_a_port_or_for_the_host(known: str, port: int, found: bool) -> None:
    """Without a line for the port, that of the host counts, as for OpenSSH."""
    assert (host_key_in(f"{known} {KEYS[0]}\n", "h", port) is not None) is found


def test_hosts_may_have_ipv6_addresses_and_all_are_of_one_family(tmp_path: Path) -> None:
    text = LEAST.replace("[10.1.0.0, 10.1.0.1]", "['fd00:0::A', 'fd00::b']")
    known = f"fd00::a {KEYS[0]}\nfd00::b {KEYS[1]}\n"
    assert loaded(tmp_path, text, known).private_ips == ("fd00::a", "fd00::b")
    found = problems(tmp_path, text.replace("'fd00::b'", "10.1.0.1"), known + DECLARED)
    assert any("hosts: some hosts reach each other by IPv4 and some by IPv6" in line for line in found)
