"""Flow's guide on rehearsed clusters: its own snippets, with only the import changed and their indentation restored."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guides import FLOW, needs_guides
from tests.integration.rehearsed import BIN, Done, nothing_left, own_environment, run
from tests.integration.without_torch import cache_without_torch

PRELUDE = Path(__file__).with_name("flow_prelude.py")
pytestmark = needs_guides
HEAD = "import os\nfrom flow_prelude import *\n"
"""Stands above every snippet."""
APP = "from clusterctl.flow import FlowApp\napp = FlowApp()\n"
"""Above those that go on where the guide's first one has made its app."""
LONGEST_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """Lines of the guide, whose text has lost its indentation."""

    function: str
    """The function in it."""
    lines_before: int
    """How many of its lines stand above `def`."""
    depths: str
    """How deep each line stands, one digit a line."""

    def text(self) -> str:
        """The program, with only the import changed."""
        lines = FLOW.read_text().splitlines()
        # The last one: the guide's introduction shows the first one in part.
        start = max(at for at, line in enumerate(lines) if line.startswith(f"def {self.function}("))
        chosen = lines[start - self.lines_before :][: len(self.depths)]
        program = "".join(f"{'    ' * int(depth)}{line}\n" for depth, line in zip(self.depths, chosen, strict=True))
        return program.replace("from flow import", "from clusterctl.flow import")


FIRST = Snippet(function="distributed_training", lines_before=11, depths="0" * 6 + "111100" + "1" * 16 + "223100")
STORAGE = Snippet(
    function="training_with_shared_storage",
    lines_before=16,
    depths="01112333223332100" + "1" * 14 + "222333221",
)
MOUNT = Snippet(function="training_with_s3_data", lines_before=5, depths="011100" + "1" * 10 + "210000110")
COSTS = Snippet(function="production_training", lines_before=15, depths="0" + "1" * 9 + "222100110000")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What programs see: a home of their own, in which apps are rehearsed. Nothing of their clusters is left."""
    folder = tmp_path_factory.mktemp("flow")
    env = environment_in(folder)
    with ExitStack() as stack:
        for snippet in (FIRST, COSTS):
            name = snippet.function.replace("_", "-")
            app = folder / "clusterctl-home" / "apps" / name
            app.mkdir(parents=True)
            (app / "rehearsal.yaml").write_text("machines: process\n")
            stack.enter_context(nothing_left(name, env=env))
        yield env


@pytest.fixture
def home_without_torch(tmp_path: Path) -> dict[str, str]:
    """Another one, whose nodes have no torch: ranks use a stand-in, and torchrun starts those of the first test."""
    (tmp_path / "home").mkdir()
    return {**environment_in(tmp_path / "home"), "CLUSTERCTL_CACHE": cache_without_torch(tmp_path / "cache")}


def environment_in(folder: Path) -> dict[str, str]:
    """The environment of programs whose home is in the folder."""
    (folder / "state").mkdir()
    return {
        **own_environment(folder),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "a test",
        "AWS_REGION": "us-west-2",
        "CLUSTERCTL_REHEARSE": "1",
        "CLUSTERCTL_ON_HOST": "1",
    }


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder of a program."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(PRELUDE, folder / "flow_prelude.py")
    return folder


def run_program(env: dict[str, str], work: Path, text: str) -> Done:
    """Runs the program in a folder that has the prelude; returns how it ended."""
    (work / "program.py").write_text(text)
    return run([sys.executable, "program.py"], env=env, cwd=work, timeout_s=LONGEST_S)


def test_the_first_snippet_trains_on_32_ranks(home: dict[str, str], work: Path) -> None:
    done = run_program(home, work, HEAD + FIRST.text() + "print(result)\n")
    assert done.exit_code == 0, done.text
    assert "{'node': 0, 'status': 'complete'}" in done.stdout
    assert done.stdout.count("Master: 10.0.8.0") == 32
    assert done.stdout.count("Epoch 9: loss=0.5000") == 1
    assert "is left out: functions run in the nodes' own python3" in done.stderr


def test_volumes_are_seen_by_all_nodes_and_so_is_a_bucket_that_run_names(
    home_without_torch: dict[str, str], work: Path
) -> None:
    name = f"t{uuid.uuid4().hex[:7]}"
    arguments = f"{name!r}, region='us-west-2', access='private', terminate_on_exit=True"
    app = f"import clusterctl\napp = clusterctl.App({arguments})\n"
    lines = (
        "with app.run():",
        *MOUNT.text().splitlines(),
        "print(task.wait(), task.result(), Flow().get_task(task.name).num_instances)",
        "print(task.exec('hostname', node=2), {line[:8] for line in task.logs(node=3).splitlines()} <= {'[Node 3]'})",
        "os.system(f'clusterctl ssh {task.name} --node 1 --command \"hostname; ls -d /shared/datasets\"')",
        "print(training_with_shared_storage.remote())",
    )
    program = HEAD + app + STORAGE.text() + lines[0] + "".join(f"\n    {line}" for line in lines[1:]) + "\n"
    with nothing_left(name, env=home_without_torch):
        done = run_program(home_without_torch, work, program)
    assert done.exit_code == 0, done.text
    assert "succeeded {'training': 'complete'} 4\n" in done.stdout
    assert f"{name}-2\n True\n" in done.stdout
    assert f"{name}-1\n/shared/datasets\n" in done.stdout
    assert done.stdout.endswith("{'epochs_completed': 10, 'checkpoints_saved': True}\n")
    assert "/shared/datasets: training-data, 1000 GB: EFS" in done.stderr
    assert "no node runs; network and storage are kept" in done.stderr


def test_a_price_above_the_cap_is_refused_with_the_real_one_and_a_higher_cap_is_taken(
    home: dict[str, str], work: Path
) -> None:
    refused = run_program(home, work, HEAD + APP + COSTS.text())
    assert refused.exit_code == 1
    assert "max_price_per_hour: a node of p5.48xlarge costs $55.04 an hour, the cap is $50.00" in refused.stderr
    done = run_program(home, work, HEAD + APP + COSTS.text().replace("=50.0,", "=60.0,"))
    assert done.exit_code == 0, done.text
    assert "Current cost: $" in done.stdout
    assert "Cost cap: $480.00/hour" in done.stdout
