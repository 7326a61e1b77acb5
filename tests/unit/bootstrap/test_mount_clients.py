"""The script by which a node installs what its mounts need."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from clusterctl_bootstrap.mount_clients import (
    LIMIT_S,
    LOCK_S,
    NAME,
    from_own_sources,
    lustre_of_ubuntu,
    mount_clients,
    signed_mountpoint,
)
from clusterctl_bootstrap.node import hooks

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born

PARTS = [
    lustre_of_ubuntu("jammy"),
    from_own_sources("nfs4", "nfs-common"),
    signed_mountpoint("1.24.0", "x86_64", "ABCD"),
]
BUDGET_BYTES = 790
"""Gzipped, with every kind of mount: user-data has room left for what people write."""
TEXT = mount_clients(PARTS).content


def test_it_runs_once_right_before_the_mounts() -> None:
    script = mount_clients(PARTS)
    assert (script.name, script.at, script.when) == (NAME, NAME, "once")


def test_it_is_given_up_after_three_minutes() -> None:
    assert LIMIT_S == 180
    assert TEXT.splitlines()[1] == '[ "$1" ] || exec timeout -k 9 180 env LOCK_S=50 "$0" now'


def test_no_name_is_left_to_be_filled_in() -> None:
    assert not re.search(r"@[A-Z_]+@", TEXT)


def test_only_what_is_needed_travels() -> None:
    assert "lustre" not in mount_clients(PARTS[1:2]).content
    assert len(gzip.compress(TEXT.encode(), mtime=0)) <= BUDGET_BYTES


def test_packages_are_installed_as_the_agent_does(tmp_path: Path) -> None:
    assert 'sh -c "$CLUSTERCTL_INSTALL" sh "$@"' in TEXT
    root, outside = born(tmp_path, with_systemd=True, scripts=(mount_clients(PARTS),)), FakeOutside()
    hooks.scripts(root, outside, NAME)
    (argv,) = outside.commands
    assert f"CLUSTERCTL_INSTALL={hooks.INSTALL}" in argv


def test_apt_says_who_holds_its_lock_before_the_scripts_time_is_over() -> None:
    assert f"timeout -k 9 {LIMIT_S} env LOCK_S={LOCK_S} " in TEXT
    assert "DPkg::Lock::Timeout=${LOCK_S:-300}" in hooks.INSTALL
    pauses_s = [int(pause) for pause in re.search(r"for pause in ([\d ]+);", hooks.INSTALL)[1].split()]  # type: ignore[index]
    assert len(pauses_s) * LOCK_S + sum(pauses_s) < LIMIT_S


def test_what_was_fetched_is_installed_only_with_the_signature_of_the_key() -> None:
    checked, installed = TEXT.index("gpg --status-fd 1 --verify"), TEXT.index("install ./$f")
    assert checked < installed
    assert 'is not signed by ABCD"; exit 1;' in TEXT[checked:installed]


@pytest.mark.parametrize(
    ("line", "is_signed"),
    [
        ("[GNUPG:] VALIDSIG 1234 2026-11-01 1793491200 0 4 0 1 10 00 ABCD", True),
        ("[GNUPG:] VALIDSIG 1234 2026-11-01 1793491200 0 4 0 1 10 00 DCBA", False),
        # Whoever makes a key gives it its name, which GnuPG shows as it is.
        ("[GNUPG:] GOODSIG 1234 VALIDSIG 00 ABCD", False),
        ("[GNUPG:] GOODSIG 1234 [GNUPG:] VALIDSIG 00 ABCD", False),
    ],
)
def test_a_key_with_another_fingerprint_cannot_name_itself_so(line: str, is_signed: bool) -> None:
    pattern = TEXT.partition("| grep -q '")[2].partition("'")[0]
    assert bool(re.search(pattern, line)) is is_signed


def test_the_kernel_stays_for_which_there_are_modules() -> None:
    assert TEXT.index('install "lustre-client-modules-$(uname -r)"') < TEXT.index("apt-mark hold")
