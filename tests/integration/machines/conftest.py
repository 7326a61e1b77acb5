"""Clusters of real machines: each test gets one of a name of its own, cleaned up however it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.process import ProcessDriver

from tests.integration.machines.real_cluster import KeyPair, RealCluster, clean_cluster, nspawn_cluster


@pytest.fixture(scope="session")
def cache() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clusterctl"
    return Path(os.environ.get("CLUSTERCTL_CACHE", default))


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="session")
def login_key(key_folder: Path) -> KeyPair:
    return make_key(key_folder / "login")


@pytest.fixture(scope="session")
def host_key(key_folder: Path) -> KeyPair:
    return make_key(key_folder / "host")


@pytest.fixture
def booted(cache: Path, tmp_path: Path, login_key: KeyPair, host_key: KeyPair) -> Iterator[RealCluster]:
    """A cluster of nspawn machines. Needs root and, the first time, the package source."""
    yield from nspawn_cluster(cache, tmp_path, login_key, host_key)


@pytest.fixture
def processes(tmp_path: Path, login_key: KeyPair, host_key: KeyPair) -> Iterator[RealCluster]:
    """A cluster of process machines of the present user."""
    driver = ProcessDriver(root=tmp_path / "machines")
    problem = driver.unusable()
    if problem is not None:
        pytest.fail(problem)
    yield from clean_cluster(driver, driver.root, tmp_path, login_key, host_key)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can own, which pytest's own folders do not allow."""
    folder = Path(tempfile.mkdtemp(prefix="clusterctl-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def make_key(path: Path) -> KeyPair:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=20)
    public = " ".join(path.with_suffix(".pub").read_text().split()[:2])
    return KeyPair(private_file=path, private=path.read_text(), public=public)
