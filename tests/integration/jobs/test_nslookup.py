"""clusterctl's own `nslookup` for tasks, as a task calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from clusterctl.on_node.workflow import nslookup


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_name_has_the_addresses_that_the_node_knows_of_either_family(tmp_path: Path, address: str) -> None:
    argv = [sys.executable, str(Path(nslookup.__file__)), address]
    done = subprocess.run(argv, env={"PATH": str(tmp_path)}, stdout=subprocess.PIPE, text=True, timeout=30)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"Address: {address}")
