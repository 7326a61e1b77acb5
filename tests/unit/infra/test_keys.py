"""Keys that follow from the seed: the same everywhere and always, unrelated for every purpose and slot."""

from __future__ import annotations

import base64

import pytest
from clusterctl_infra.keys import (
    KeyPair,
    barrier_secret,
    derive,
    host_authority,
    host_key,
    host_public_key,
    login_key,
    node_key,
)
from clusterctl_infra.openssh_key import private_pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from hypothesis import given
from hypothesis import strategies as st

SEED = bytes(range(32))
SEEDS = st.binary(min_size=32, max_size=32)
SLOTS = st.integers(0, 999)


def public_of(pair: KeyPair) -> str:
    """The public key that belongs to the private one, as cryptography reads it."""
    private = load_ssh_private_key(pair.private_pem.encode(), password=None)
    return private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@given(seed=SEEDS, slot=SLOTS)
def test_a_private_key_is_read_and_belongs_to_its_public_line(seed: bytes, slot: int) -> None:
    pair = host_key(seed, slot)
    assert public_of(pair) == " ".join(pair.public.split()[:2])
    assert host_public_key(seed, slot) == pair.public


def test_the_keys_of_a_seed_never_change() -> None:
    """They are written out here: another serialiser or derivation would replace every node of every cluster."""
    assert host_key(SEED, 0).public == (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILxSb26iXL98CGnrauii552/7eXrxSsDK8XS7+LDanP5 clusterctl-host-0"
    )
    assert login_key(SEED).public == (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMmfxAlleWDRVBNQY5EJau2Hxt75yJpG1tpAGtW5IWqi clusterctl-login"
    )
    assert node_key(SEED).public == (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJbLy+RjE2eeKiVluDtmiPQm880nadhvJivhJ4WCmgQe clusterctl-node"
    )
    assert host_authority(SEED) == (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID/jF7Uy9x16ZklWoR/qMpkpr3Fege1V/Ts4JfAbTox8 clusterctl-host-authority"
    )
    assert barrier_secret(SEED).hex()[:16] == "c8a6d2f44a45b721"


@given(seed=SEEDS, slot=SLOTS)
def test_the_same_seed_gives_the_same_bytes(seed: bytes, slot: int) -> None:
    assert host_key(seed, slot) == host_key(seed, slot)
    assert login_key(seed).private_pem == login_key(seed).private_pem


def test_every_slot_purpose_and_seed_has_a_key_of_its_own() -> None:
    seeds = (SEED, bytes(32))
    keys = [host_key(seed, slot).public.split()[1] for seed in seeds for slot in range(64)]
    keys += [line.split()[1] for seed in seeds for line in (login_key(seed).public, node_key(seed).public)]
    keys += [host_authority(seed).split()[1] for seed in seeds]
    assert len(set(keys)) == len(keys)
    assert derive(SEED, "a") != derive(SEED, "b")
    assert derive(SEED, "a", 1) != derive(SEED, "a", 11)


def test_a_key_pair_shows_nothing_secret() -> None:
    pair = login_key(SEED)
    assert "PRIVATE" not in repr(pair)
    assert pair.public in repr(pair)


@pytest.mark.parametrize("length", [16, 32, 64])
def test_as_many_bytes_come_as_were_asked_for(length: int) -> None:
    assert len(derive(SEED, "something", length=length)) == length


@given(comment=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_a_comment_of_any_length_is_padded_to_whole_blocks(comment: str) -> None:
    private = derive(SEED, "x")
    public = Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    pem = private_pem(private, public, check=b"abcd", comment=comment)
    assert load_ssh_private_key(pem.encode(), password=None)
    blob = base64.b64decode("".join(pem.splitlines()[1:-1]))
    assert secrets_in(blob) % 8 == 0


def secrets_in(blob: bytes) -> int:
    """How many bytes the last string of the blob has: after magic, three strings, a count and the public key."""
    at = len(b"openssh-key-v1\0")
    for skipped in (0, 0, 0, 4):
        at += skipped
        at += 4 + int.from_bytes(blob[at : at + 4], "big")
    return len(blob) - at - 4


@pytest.mark.parametrize("part", ["private", "public", "check"])
def test_parts_of_another_length_are_refused(part: str) -> None:
    parts = {"private": bytes(32), "public": bytes(32), "check": bytes(4)}
    parts[part] += b"x"
    with pytest.raises(ValueError, match="32 private and 32 public bytes"):
        private_pem(**parts, comment="")
