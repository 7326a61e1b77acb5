"""User-data, read without cloud-init."""

from __future__ import annotations

import base64
import gzip
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
from clusterctl_rehearsal.machines.driver import MachineError, MachineFile
from clusterctl_rehearsal.machines.unprivileged_root import root_files
from clusterctl_rehearsal.machines.user_data import parts, unpack, written_file

from tests.unit.rehearsal.machines.machine_specs import machine_spec

CONFIG = """\
#cloud-config
hostname: train-0
ssh_keys: {ed25519_private: "PRIVATE\\n", ed25519_public: ssh-ed25519 AAAA}
users:
  - name: ubuntu
    ssh_authorized_keys: [ssh-ed25519 LOGIN]
write_files:
  - {path: /usr/local/bin/clusterctl-node, permissions: "0755", content: "#!/bin/sh\\n"}
"""


def multipart(*contents: tuple[str, str]) -> bytes:
    message = MIMEMultipart()
    for text, kind in contents:
        message.attach(MIMEText(text, kind, "utf-8"))
    return gzip.compress(message.as_bytes(), mtime=0)


def test_host_keys_users_and_files_are_taken_from_cloud_config() -> None:
    found = unpack(multipart(("#!/bin/sh\nreboot\n", "cloud-boothook"), (CONFIG, "cloud-config")))
    assert found.host_keys == {"ed25519_private": "PRIVATE\n", "ed25519_public": "ssh-ed25519 AAAA"}
    assert found.authorized_keys == ("ssh-ed25519 LOGIN",)
    assert found.files == {"/usr/local/bin/clusterctl-node": MachineFile(content=b"#!/bin/sh\n", mode=0o755)}


def test_a_plain_cloud_config_is_one_part() -> None:
    assert [kind for kind, _ in parts(CONFIG.encode())] == ["text/cloud-config"]


def test_a_script_alone_declares_nothing() -> None:
    found = unpack(b"#!/bin/sh\necho\n")
    assert not found.files
    assert not found.authorized_keys


@pytest.mark.parametrize(
    ("entry", "content"),
    [
        ({"content": "text"}, b"text"),
        ({"content": base64.b64encode(b"raw\0").decode(), "encoding": "b64"}, b"raw\0"),
        ({"content": gzip.compress(b"zipped"), "encoding": "gzip"}, b"zipped"),
        ({"content": base64.b64encode(gzip.compress(b"both")).decode(), "encoding": "gz+b64"}, b"both"),
        ({}, b""),
    ],
)
def test_files_come_in_every_encoding(entry: dict[str, object], content: bytes) -> None:
    assert written_file({"path": "/x", **entry}).content == content


@pytest.mark.parametrize(("permissions", "mode"), [("0755", 0o755), ("600", 0o600), (0o644, 0o644)])
def test_permissions_are_octal(permissions: object, mode: int) -> None:
    assert written_file({"path": "/x", "permissions": permissions}).mode == mode


def test_broken_content_names_its_file() -> None:
    with pytest.raises(MachineError, match="write_files /x"):
        written_file({"path": "/x", "content": "not gzip", "encoding": "gz"})


@pytest.mark.parametrize("text", ["#cloud-config\n- a list\n", "#cloud-config\na: [\n"])
def test_an_unreadable_cloud_config_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match="cloud-config"):
        unpack(text.encode())


def test_a_process_machine_is_reached_with_the_declared_keys() -> None:
    spec = machine_spec(user_data=multipart((CONFIG, "cloud-config")))
    files = root_files(spec, unpack(spec.user_data))
    assert files["/etc/ssh/ssh_host_ed25519_key"] == MachineFile(content=b"PRIVATE\n", mode=0o600)
    assert files["/home/ubuntu/.ssh/authorized_keys"] == MachineFile(content=b"ssh-ed25519 LOGIN\n", mode=0o600)
    assert b"10.0.8.0 train-0" in files["/etc/hosts"].content
    assert b"ubuntu:x:1000:" in files["/etc/passwd"].content
    assert files["/etc/shadow"].content == b""
    # The agent writes there, and a folder of the host's own would let it not.
    assert files["/etc/profile.d/clusterctl.sh"].content == b""


TORN = gzip.compress(CONFIG.encode() * 50, mtime=0)[:60]


@pytest.mark.parametrize(
    "torn",
    [TORN, TORN[:3], gzip.compress(b"#!/bin/sh\n", mtime=0)[:-4], b"\x1f\x8b" + bytes(20)],
    ids=["cut short", "its first bytes", "without its checksum", "no gzip"],
)
def test_gzip_that_is_torn_or_none_at_all_is_told(torn: bytes) -> None:
    with pytest.raises(MachineError, match="user-data"):
        unpack(torn)
    with pytest.raises(MachineError, match="write_files /f: not gzip"):
        written_file({"path": "/f", "encoding": "gzip", "content": torn})
