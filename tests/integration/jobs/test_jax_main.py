"""`jax_main.py` as a process, with a stand-in for JAX: a script that fails ends before JAX's own end, which waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.rehearsed import ROOT

JAX_MAIN = ROOT / "cli" / "clusterctl" / "on_node" / "job" / "jax_main.py"
JAX = """\
import atexit
from jax import distributed
atexit.register(print, "waits for all others")
"""
DISTRIBUTED = """\
def initialize(**values):
    print(sorted(values.items()))
"""
SCRIPT = """\
import atexit, sys
import jax
jax.distributed.initialize()
atexit.register(print, "the script's own end")
%s
"""
JOINED = (
    "[('coordinator_address', '10.0.8.0:28100'), ('local_device_ids', [0, 1]), ('num_processes', 2), ('process_id', 1)]"
)


@pytest.mark.parametrize(
    ("end", "code", "last"),
    [
        ("", 0, ["waits for all others"]),
        ("sys.exit(0)", 0, ["waits for all others"]),
        ("sys.exit(7)", 7, []),
        ("sys.exit('why')", 1, []),
        ("raise ValueError('why')", 1, []),
    ],
)
def test_a_script_that_fails_does_not_wait_for_others(tmp_path: Path, end: str, code: int, last: list[str]) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text(JAX)
    (tmp_path / "jax" / "distributed.py").write_text(DISTRIBUTED)
    (tmp_path / "train.py").write_text(SCRIPT % end)
    place = {"JAX_COORDINATOR_ADDRESS": "10.0.8.0:28100", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
    environ = {**os.environ, **place, "JAX_LOCAL_DEVICE_IDS": "0,1", "PYTHONPATH": str(tmp_path)}
    argv = [sys.executable, str(JAX_MAIN), "train.py"]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines() == [JOINED, "the script's own end", *last]
    assert ("why" in done.stderr) == ("why" in end)
