"""State in a bucket: its locks are seen only by trying; one of a run that was killed here goes, a colleague's stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # a client of boto3's
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.integration.kill_campaign import Kill, kill_during, steps_in, victims_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, wait_until

KILL = Kill(part="both", after_events=40, jitter_s=0.0, then="up", wait_s=0.0)
"""The command line and its engine at once, as by a power cut: neither gives the lock back."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Rehearsed]:
    """A cluster without machines whose state is in a bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        bucket_at(f"http://127.0.0.1:{port}").create_bucket(Bucket="states")
        options = f"endpoint=http://127.0.0.1:{port}&disable_https=true&use_path_style=true&region=us-east-1"
        with rehearsed(tmp_path, machines="none", nodes=2) as made:
            made.env["PULUMI_BACKEND_URL"] = f"s3://states?{options}"
            yield made
    finally:
        server.stop()


def bucket_at(endpoint_url: str) -> Any:
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="test", region_name="us-east-1")
    return session.client("s3", endpoint_url=endpoint_url)


def locks(cluster: Rehearsed) -> list[str]:
    """The names of the locks in the bucket of the cluster's state."""
    endpoint_url = parse_qs(urlsplit(cluster.env["PULUMI_BACKEND_URL"]).query)["endpoint"][0]
    found = bucket_at(endpoint_url).list_objects_v2(Bucket="states", Prefix=".pulumi/locks/")
    return [row["Key"] for row in found.get("Contents", ())]


def test_the_lock_of_a_run_that_was_killed_here_keeps_nobody_from_going_on(cluster: Rehearsed, tmp_path: Path) -> None:
    kill_during(cluster, KILL)
    record = cluster.home / "runs" / f"{cluster.name}@rehearsal.json"
    kept = shutil.move(record, tmp_path / "record.json")

    for verb in ("up", "down"):  # as after a plain `pulumi up` that was killed
        refused = cluster.run(verb, str(cluster.folder))
        assert refused.exit_code == 1, refused.text
        assert "is changing this stack: started by" in refused.stderr
        assert f"next: cd {cluster.folder} && pulumi cancel --stack dev" in refused.stderr

    shutil.move(kept, record)
    done = cluster.run("up", str(cluster.folder))
    assert done.exit_code == 0, done.text
    assert "removed the lock of pid" in done.stderr
    cluster.down()


def test_of_two_people_on_one_state_the_second_names_the_first_and_disturbs_nothing(
    cluster: Rehearsed, tmp_path: Path
) -> None:
    cluster.keep_steps()  # the second finds the state half written
    bobs = {**cluster.env, "CLUSTERCTL_HOME": str(tmp_path / "bob")}
    argv = [CLUSTERCTL, "up", str(cluster.folder)]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(argv, env=cluster.env, stdin=nowhere, stdout=nowhere, stderr=nowhere) as first:
        # Not its first lock: the engine takes one for a moment before, to make the stack.
        wait_until(
            lambda: steps_in(cluster.home / "log") > 0 or first.poll() is not None,
            what="the first makes resources",
            timeout_s=60,
        )
        engines = victims_of("engine", cluster, cli=first.pid)
        with frozen(engines):
            held = locks(cluster)
            second = subprocess.run(argv, env=bobs, capture_output=True, text=True, timeout=60, stdin=nowhere)
        assert first.wait(timeout=120) == 0
    assert held, "the first was over before"
    assert second.returncode == 1, second.stderr
    assert "is changing this stack: started by" in second.stderr
    assert cluster.ok("nodes").count("i-") == 2
    assert locks(cluster) == []


@contextmanager
def frozen(pids: Sequence[int]) -> Iterator[None]:
    """Processes of ours that stand still meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
