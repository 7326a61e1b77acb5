"""`jax_main.py` as a process, with a stand-in for JAX: when it joins, and that a script that fails does not wait."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.rehearsed import ROOT

JAX_MAIN = ROOT / "cli" / "clusterctl" / "on_node" / "job" / "jax_main.py"
JAX = """\
import atexit, os
from jax import distributed
enable_x64 = os.environ.get("JAX_ENABLE_X64")
@atexit.register
def clean_up():
    print("waits for all others")
"""
DISTRIBUTED = """\
def initialize(**values):
    print(sorted(values.items()))
"""
SCRIPT = """\
import atexit, sys
atexit.register(print, "what was registered before JAX")
import jax
jax.distributed.initialize()
atexit.register(print, "the script's own end")
%s
"""
JOINED = (
    "[('coordinator_address', '10.0.8.0:28100'), ('local_device_ids', [0, 1]), ('num_processes', 2), ('process_id', 1)]"
)


def run(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The script, or `words`, as rank 1 of two."""
    (folder / "jax").mkdir()
    (folder / "jax" / "__init__.py").write_text(JAX)
    (folder / "jax" / "distributed.py").write_text(DISTRIBUTED)
    (folder / "train.py").write_text(script)
    place = {"JAX_COORDINATOR_ADDRESS": "10.0.8.0:28100", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
    environ = {**os.environ, **place, "JAX_LOCAL_DEVICE_IDS": "0,1", "PYTHONPATH": str(folder)}
    argv = [sys.executable, str(JAX_MAIN), *(words or ["train.py"])]
    return subprocess.run(argv, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("end", "code", "waits"),
    [
        ("", 0, ["waits for all others"]),
        ("sys.exit(0)", 0, ["waits for all others"]),
        ("sys.exit(7)", 7, []),
        ("sys.exit('why')", 1, []),
        ("raise ValueError('why')", 1, []),
    ],
)
def test_a_script_that_fails_does_not_wait_for_others(tmp_path: Path, end: str, code: int, waits: list[str]) -> None:
    done = run(tmp_path, SCRIPT % end)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines() == [JOINED, "the script's own end", *waits, "what was registered before JAX"]
    assert ("why" in done.stderr) == ("why" in end)


@pytest.mark.parametrize("words", [(), ("-m", "train")])
def test_what_the_script_sets_before_it_imports_jax_holds(tmp_path: Path, words: tuple[str, ...]) -> None:
    script = "import os\nos.environ['JAX_ENABLE_X64'] = '1'\nprint('first')\nimport jax\nprint(jax.enable_x64)\n"
    done = run(tmp_path, script, *words)
    assert done.stdout.splitlines() == ["first", JOINED, "1", "waits for all others"], done.stderr


LOOKED = """\
import importlib.util, os, sys
assert importlib.util.find_spec("jax").origin.endswith("__init__.py")
child = os.fork()
import jax
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert jax.__loader__.get_filename("jax") == jax.__spec__.loader.path == jax.__file__
assert not any(type(finder).__name__ == "JaxFinder" for finder in sys.meta_path)
"""


def test_whoever_looks_for_jax_or_is_forked_joins_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, LOOKED)
    assert (done.returncode, done.stdout.splitlines()) == (0, [JOINED, "waits for all others"]), done.stderr


def test_a_script_without_jax_runs_and_keeps_its_exit_code(tmp_path: Path) -> None:
    done = run(tmp_path, "print('no jax'); raise SystemExit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "no jax\n", "")
