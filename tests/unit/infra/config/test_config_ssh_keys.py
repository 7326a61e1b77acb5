"""Public keys as people paste them."""

from __future__ import annotations

import base64

import pytest
from clusterctl_infra.config.ssh_keys import KINDS, SecretPasted, check_public_key


def line(kind: str, *, cut: int = 0) -> str:
    blob = len(kind).to_bytes(4, "big") + kind.encode() + (32).to_bytes(4, "big") + bytes(32)
    return f"{kind} {base64.b64encode(blob[: len(blob) - cut]).decode()} ada@laptop"


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_key_is_kept_as_it_is(kind: str) -> None:
    assert check_public_key(f"  {line(kind)}\n") == line(kind)
    without_comment = line(kind).removesuffix(" ada@laptop")
    assert check_public_key(without_comment) == without_comment


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("~/.ssh/id_ed25519.pub", "a file's name"),
        ("ssh-dss AAAA", "not an SSH public key"),
        ("", "not an SSH public key"),
        ("ssh-ed25519", "not a whole SSH public key"),
        ("ssh-ed25519 AAAA!", "not a whole SSH public key"),
        (line("ssh-ed25519", cut=9), "not a whole SSH public key"),
        (line("ssh-rsa").replace("ssh-rsa", "ssh-ed25519"), "not a whole SSH public key"),
        (line("ssh-ed25519") + "\n" + line("ssh-ed25519"), "more than one line"),
        (["ssh-ed25519"], "not a single value"),
    ],
)
def test_what_is_no_public_key_is_refused(text: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_public_key(text)


def test_a_private_key_is_a_secret() -> None:
    with pytest.raises(SecretPasted):
        check_public_key("-----BEGIN OPENSSH PRIVATE KEY-----")
