"""Which keys a login is tried with, and in which order."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.identity_files import Identities, identities
from clusterctl.ssh.keys.login_keys import OWN_KEYS, identities_for_ssh, key_in_file, keys_to_try, load_login_keys
from clusterctl_infra.keys import KeyPair, host_key
from clusterctl_infra.outputs import InventorySsh

from tests.unit.cli.conftest import MakeInventory

PAIRS = tuple(host_key(bytes(32), number) for number in range(8))


@pytest.fixture(autouse=True)
def without_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def ssh(*declared: KeyPair) -> InventorySsh:
    public_keys = tuple(pair.public for pair in declared)
    return InventorySsh(user="ubuntu", key_file=None, proxy_command=None, public_keys=public_keys)


def base64_of(pair: KeyPair) -> str:
    return pair.public.split()[1]


def test_of_many_keys_the_declared_are_tried_first_and_no_more_than_sshd_takes(tmp_path: Path) -> None:
    keys = []
    for number, pair in enumerate(PAIRS):
        path = tmp_path / f"key-{number}"
        path.write_text(pair.private_pem)
        keys.append(key_in_file(path))
    tried = keys_to_try(keys, [PAIRS[6].public, "broken"])
    assert [base64.b64encode(key.public).decode() for key in tried] == [base64_of(PAIRS[n]) for n in (6, 0, 1, 2, 3)]


def test_a_key_that_the_persons_configuration_names_for_a_node_is_one_of_theirs(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    home, inventory = Home(path=tmp_path), make_inventory(ssh=ssh(PAIRS[5]))
    (tmp_path / "work_key").write_text(PAIRS[5].private_pem)
    config = tmp_path / "config"
    config.write_text(f"Host other\n  IdentityFile {tmp_path / 'work_key'}\n")
    with pytest.raises(NodeFailure, match="no SSH key"):
        load_login_keys(inventory, home, ssh_dir=tmp_path)
    assert identities_for_ssh(inventory, home, tmp_path) == Identities()
    config.write_text(f"Host train-*\n  User nobody\n  IdentityFile {tmp_path / 'work_key'}\n")
    found = load_login_keys(inventory, home, ssh_dir=tmp_path)
    assert [base64.b64encode(key.public).decode() for key in found.keys] == [base64_of(PAIRS[5])]
    assert identities_for_ssh(inventory, home, tmp_path).files == (tmp_path / "work_key",)
    assert identities_for_ssh(make_inventory(), home, tmp_path) == Identities(), "the cluster has a key of its own"


def test_an_old_key_without_its_public_half_hides_no_other(tmp_path: Path, make_inventory: MakeInventory) -> None:
    old = "-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n"
    for name in ("id_rsa", "aws.pem"):
        (tmp_path / name).write_text(old)
    (tmp_path / "config").write_text(f"Host *\n  IdentityFile {tmp_path / 'aws.pem'}\n")
    found = load_login_keys(make_inventory(ssh=ssh(PAIRS[5])), Home(path=tmp_path), ssh_dir=tmp_path)
    assert [key.path for key in found.keys] == [tmp_path / "aws.pem", tmp_path / "id_rsa"]


def test_a_key_with_a_passphrase_is_in_nobodys_way(tmp_path: Path, make_inventory: MakeInventory) -> None:
    locked = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n-----END RSA PRIVATE KEY-----\n"
    (tmp_path / "id_rsa").write_text(locked)
    with pytest.raises(NodeFailure, match="has a passphrase: add it to your agent"):
        load_login_keys(make_inventory(ssh=ssh()), Home(path=tmp_path), ssh_dir=tmp_path)
    (tmp_path / "id_ed25519").write_text(PAIRS[0].private_pem)
    assert len(load_login_keys(make_inventory(ssh=ssh()), Home(path=tmp_path), ssh_dir=tmp_path).keys) == 1
    (tmp_path / "id_rsa.pub").write_text(PAIRS[3].public)
    with pytest.raises(NodeFailure, match="has a passphrase"):
        load_login_keys(make_inventory(ssh=ssh(PAIRS[3])), Home(path=tmp_path), ssh_dir=tmp_path)


def test_the_declared_one_of_a_persons_keys_is_tried_first(tmp_path: Path, make_inventory: MakeInventory) -> None:
    for name, pair in zip(OWN_KEYS, PAIRS, strict=False):
        (tmp_path / name).write_text(pair.private_pem)
    found = load_login_keys(make_inventory(ssh=ssh(PAIRS[2])), Home(path=tmp_path), ssh_dir=tmp_path)
    assert [base64.b64encode(key.public).decode() for key in found.keys] == [base64_of(PAIRS[n]) for n in (2, 0, 1)]
    assert found.described == "your 3 SSH keys"


@pytest.mark.parametrize("yes", ["yes", "true"])
def test_identities_only_leaves_the_usual_keys_out(tmp_path: Path, make_inventory: MakeInventory, yes: str) -> None:
    home, inventory = Home(path=tmp_path), make_inventory(ssh=ssh())
    (tmp_path / "id_ed25519").write_text(PAIRS[0].private_pem)
    (tmp_path / "work_key").write_text(PAIRS[1].private_pem)
    config = tmp_path / "config"
    config.write_text(f"Host train-*\n  IdentityFile {tmp_path / 'work_key'}\n")
    assert len(load_login_keys(inventory, home, ssh_dir=tmp_path).keys) == 2
    config.write_text(config.read_text() + f"  IdentitiesOnly {yes}\n")
    (key,) = load_login_keys(inventory, home, ssh_dir=tmp_path).keys
    assert key.path == tmp_path / "work_key"
    assert identities_for_ssh(inventory, home, tmp_path) == Identities(files=(tmp_path / "work_key",), is_only=True)


@pytest.mark.parametrize(
    ("agent", "socket"),
    [
        ("~/a b/agent.sock", "/home/me/a b/agent.sock"),
        ("%d/agent.sock", "/home/me/agent.sock"),
        ("$MINE", "/run/mine"),
        ("SSH_AUTH_SOCK", "/run/usual"),
        ("none", ""),
    ],
)
def test_an_agent_that_the_configuration_names_is_asked_instead_of_the_usual_one(
    tmp_path: Path, make_inventory: MakeInventory, monkeypatch: pytest.MonkeyPatch, agent: str, socket: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("MINE", "/run/mine")
    (tmp_path / "config").write_text(f'Host train-0\n  IdentityAgent "{agent}"\n')
    found = identities(make_inventory().nodes, tmp_path / "config")
    assert found.agent_socket("/run/usual") == socket
    assert identities(make_inventory().nodes[1:], tmp_path / "config").agent_socket("/run/usual") == "/run/usual"
