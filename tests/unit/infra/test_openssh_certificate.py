"""Host certificates, read by somebody else's parser."""

from __future__ import annotations

import base64

import pytest
from clusterctl_infra.keys import host_authority, host_certificate, host_key
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_identity
from cryptography.hazmat.primitives.serialization.ssh import (
    SSHCertificate,
    SSHCertificateType,
    SSHCertPublicKeyTypes,
)
from hypothesis import given
from hypothesis import strategies as st

SEED = bytes(range(32))
SEEDS = st.binary(min_size=32, max_size=32)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","), min_size=1, max_size=60)
FOR_EVER = 2**64 - 1


def read(line: str) -> SSHCertificate:
    certificate = load_ssh_public_identity(line.encode())
    assert isinstance(certificate, SSHCertificate)
    return certificate


def openssh(key: SSHCertPublicKeyTypes) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@given(seed=SEEDS, slot=st.integers(0, 999), names=st.lists(NAMES, min_size=1, max_size=4))
def test_a_certificate_says_whose_key_it_is_and_who_says_so(seed: bytes, slot: int, names: list[str]) -> None:
    certificate = read(host_certificate(seed, slot, principals=names))
    certificate.verify_cert_signature()
    assert certificate.type is SSHCertificateType.HOST
    assert [name.decode() for name in certificate.valid_principals] == names
    assert (certificate.valid_after, certificate.valid_before) == (0, FOR_EVER)
    assert openssh(certificate.public_key()) == " ".join(host_key(seed, slot).public.split()[:2])
    assert openssh(certificate.signature_key()) == " ".join(host_authority(seed).split()[:2])
    assert (certificate.critical_options, certificate.extensions) == ({}, {})


def test_the_same_host_has_the_same_certificate_every_time() -> None:
    lines = {host_certificate(SEED, 3, principals=["train-3", "10.0.8.3"]) for _ in range(3)}
    assert len(lines) == 1


def test_a_certificate_with_another_name_in_it_is_not_signed() -> None:
    kind, blob = host_certificate(SEED, 3, principals=["train-3"]).split()
    forged = base64.b64encode(base64.b64decode(blob).replace(b"train-3", b"train-1")).decode()
    with pytest.raises(InvalidSignature):
        read(f"{kind} {forged}").verify_cert_signature()


@pytest.mark.parametrize("name", ["a", "ab", "abc"])
def test_the_keys_in_a_certificate_are_written_as_elsewhere_in_user_data(name: str) -> None:
    """So that gzip writes each of them once."""
    line = host_certificate(SEED, 3, principals=[name])
    assert host_authority(SEED).split()[1] in line
    assert host_key(SEED, 3).public.split()[1][-40:] in line


def test_a_certificate_for_every_host_is_never_made() -> None:
    with pytest.raises(ValueError, match="good for every host"):
        host_certificate(SEED, 0, principals=[])
