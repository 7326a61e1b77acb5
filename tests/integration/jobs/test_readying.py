"""What runs on a node for a job before its start: what it reads, and what is run once for several jobs."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.facts import missing_program
from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.ready import Readying

from tests.unit.cli.jobs.job_specs import spec
from tests.unit.cli.jobs.leases import in_the_way

BECOME = "import os, sys\nargv = sys.argv[sys.argv.index('--') + 1 :]\nos.execvp(argv[0], argv)\n"
"""In the place of the node's program, which gives up rights before it becomes the command."""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "etc/clusterctl").mkdir(parents=True)
    write_json(Layout(tmp_path).node_file, {"slot": 1, "mounts": [{"path": "/efs"}]})
    (tmp_path / "program").write_text(BECOME)
    return Layout(tmp_path)


def readying(layout: Layout, job: str, setup: str | None = None, **changes: Any) -> Readying:
    """One of a job that holds a GPU of the node."""
    assert in_the_way(layout, job, gpus=1) == []
    layout.code(job).mkdir(parents=True)
    layout.attempt(job, 1).mkdir(parents=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    write_json(layout.spec(job), spec(job=job, user=user, setup=setup, is_sudo=True, **changes))
    return Readying(layout, job, layout.root / "program")


def test_a_lock_that_no_pipe_holds_reaches_a_program_that_reads_late(layout: Layout) -> None:
    own = readying(layout, "first")
    code, output = own.run(["sh", "-c", "sleep 0.4; wc -c"], keeps_output=True, stdin="x" * 200_000)
    assert (code, output.strip()) == (0, "200000")


def test_a_setup_that_names_a_file_is_run_once_for_all_jobs_that_send_the_same_one(layout: Layout) -> None:
    for job, text, count in (("first", "a", 1), ("second", "a", 1), ("third", "b", 2)):
        own = readying(layout, job, f"cat install.sh >> {layout.root}/ran")
        (layout.code(job) / "install.sh").write_text(text)
        own.make("")
        assert len((layout.root / "ran").read_text()) == count


def test_what_is_made_ready_in_an_image_counts_the_job_s_gpus_as_its_ranks_do(layout: Layout) -> None:
    member = {"slot": 1, "name": "train-1", "address": "10.0.8.1", "gpus": 2, "nproc": 2, "gpu_indices": [4, 5]}
    on_node = readying(layout, "first", members=[member])
    in_image = readying(layout, "second", members=[member], image_id="sha256:01")
    assert on_node.environment()["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert in_image.environment()["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_a_program_that_is_not_there_is_named_but_not_on_shared_storage(layout: Layout, tmp_path: Path) -> None:
    assert missing_program(layout, "") is None
    assert missing_program(layout, str(tmp_path / "program")) is None
    assert missing_program(layout, str(tmp_path / "none")) == str(tmp_path / "none")
    assert missing_program(layout, "/efs/none") is None
