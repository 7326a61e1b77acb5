"""What holds for every test: a home of its own, and no way to anybody's account or engine state."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Machines differ and are shared: a slow example is no failure here. The timing tests say so themselves.
settings.register_profile("tests", deadline=None, print_blob=True)
settings.load_profile("tests")

# By default Python looks through all objects 60 times during the unit tests, half a second of the processor each time,
# as botocore's and Pulumi's modules come to a million objects (measured 2026-11-27).
gc.set_threshold(5000, 20, 20)

# A shell starts what it runs in the background with SIGINT ignored, and children inherit that: tests of Ctrl-C could
# never pass there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test leaves a process behind that keeps connections, except the tests of that process.
os.environ["CLUSTERCTL_WARM"] = "no"

REAL_ACCOUNT_SETTINGS = ("AWS_", "PULUMI_", "CLUSTERCTL_")
KEPT = ("CLUSTERCTL_CACHE", "CLUSTERCTL_TEST_RUN", "CLUSTERCTL_WARM")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path for each test, where nothing is yet.

    It is not below `tmp_path`: to make that, pytest lists the folders of all tests before, for thousands of tests that
    want no folder.
    """
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `$CLUSTERCTL_HOME` of the test's own; whatever points at a real account is taken away."""
    for name in os.environ:
        if name.startswith(REAL_ACCOUNT_SETTINGS) and name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    home = next(homes)
    monkeypatch.setenv("CLUSTERCTL_HOME", str(home))
    return home
