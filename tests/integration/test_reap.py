"""What clusters left in the account is found, judged and ended, on the real engine; machines are only written down."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl.engine.strays import is_engine, is_part

from tests.integration.kill_campaign import pids_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, wait_until


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two private nodes with a file system: gateways, addresses and data that bill."""
    storage = [{"mount": "/work", "efs": {}}]
    with rehearsed(tmp_path, machines="none", nodes=2, access={"mode": "private"}, storage=storage) as cluster:
        cluster.keep_steps()
        yield cluster


def test_after_a_kill_and_the_loss_of_all_local_state_reap_finds_and_ends_everything(stored: Rehearsed) -> None:
    kill_up_with_a_machine(stored)
    forget_everything_local(stored)
    seen = only_cluster(stored)
    assert seen["name"] == stored.name
    assert seen["whose"] == "unknown here"
    assert seen["usd_per_day"] > 24 * 2 * 55.04  # reserved, whether or not a machine runs in it
    assert not seen["ends"]
    done = stored.run("reap", "--rehearse", "--region", "us-west-2", "--yes")
    assert done.exit_code == 0, done.text
    assert {thing["id"] for thing in only_cluster(stored)["things"]} >= {thing["id"] for thing in seen["things"]}

    named = ("reap", "--rehearse", "--all-regions", "--cluster", str(seen["cluster_id"]), "--yes")
    done = stored.run(*named)
    assert done.exit_code == 0, done.text
    left = only_cluster(stored)["things"]
    data = [thing["id"] for thing in left if thing["is_data"]]
    assert {thing["kind"] for thing in left} >= {"EFS file system", "VPC", "subnet"}
    assert not [thing for thing in left if not thing["is_data"] and thing["usd_per_day"] != 0]
    done = stored.run_unshown(*named, "--data", data[0])
    assert done.exit_code == 1, done.stderr
    assert "ending EFS file system" in done.stderr, "as on a scheduler whose log is full"
    assert "stdout cannot be written: No space left on device" in done.stderr
    assert stored.resources() == []
    assert "nothing of any cluster" in stored.ok("reap", "--rehearse", "--all-regions")


def test_a_cluster_of_ones_own_is_ended_past_its_deadline_and_down_then_forgets_it(stored: Rehearsed) -> None:
    stored.up()
    assert_no_other_region_takes_its_name(stored)
    region = ("reap", "--rehearse")
    living = only_cluster(stored)
    assert (living["whose"], living["ends"]) == ("mine", False)
    assert "its deadline is" in living["reason"]
    output = stored.ok(*region)
    assert "yours" in output
    assert "simulated money" in output
    refused = stored.run(*region, "--cluster", "ffffffffffff", "--yes")
    assert refused.exit_code == 3, refused.text
    done = stored.run(*region, "--cluster", str(living["cluster_id"]), "--yes")
    assert done.exit_code == 0, done.text
    kinds = [line.split(": ending ")[1].rpartition(" ")[0] for line in done.stderr.splitlines() if ": ending " in line]
    assert kinds.index("instance") < kinds.index("NAT gateway") < kinds.index("schedule") < kinds.index("role")
    assert f"clusterctl down --cluster {stored.name}@rehearsal" in done.stderr
    assert_reaped_is_shown_everywhere(stored)
    down = stored.run("down", str(stored.folder))
    assert down.exit_code == 0, down.text
    assert "gone from AWS" in down.stderr
    assert stored.run("down", str(stored.folder), "--all").exit_code == 0
    assert stored.resources() == []


def assert_no_other_region_takes_its_name(cluster: Rehearsed) -> None:
    """Another stack, another region, the same name: its `up` would put its inventory and key in the place of these."""
    known, other = cluster.inventory(), cluster.folder.parent / "other"
    shutil.copytree(cluster.folder, other)
    for path in other.glob("Pulumi.*.yaml"):
        path.unlink()
    (other / "Pulumi.yaml").write_text((other / "Pulumi.yaml").read_text().replace(cluster.name, "other", 1))
    config = {**cluster.config, "region": "us-east-1", "zone": "us-east-1a"}
    (other / "cluster.yaml").write_text(json.dumps(config))
    refused = cluster.run("up", str(other))
    assert refused.exit_code == 1, refused.text
    assert f"it runs in us-west-2 (clusterctl:id {known['cluster_id']})" in refused.stderr
    assert cluster.inventory() == known


def assert_reaped_is_shown_everywhere(cluster: Rehearsed) -> None:
    """No machine, no reservation: nobody says that one bills, and `up` names the way out before it makes anything."""
    status = cluster.run("status")
    assert "reaped" in status.stdout.splitlines()[0], status.text
    assert f"clusterctl down --cluster {cluster.name}@rehearsal" in status.stdout
    assert "clusterctl up" not in status.stdout
    cost = json.loads(cluster.ok("cost", "--json"))
    assert cost["deadline_reason"] == "reaped"
    assert all(row["ended_at"] for row in cost["rows"] if row["kind"] in ("node", "empty")), cost["rows"]
    refused = cluster.run("up", str(cluster.folder))
    assert refused.exit_code == 1, refused.text
    assert "was reaped, or ended by hand" in refused.stderr
    assert f"clusterctl down {cluster.folder} && clusterctl up {cluster.folder}" in refused.stderr
    unmoved = cluster.run("extend", "1h", "--cluster", f"{cluster.name}@rehearsal")
    assert unmoved.exit_code == 1, unmoved.text
    assert "was reaped, or ended by hand" in unmoved.stderr
    assert " longer, until " not in unmoved.text, "no price is asked for what is not there"


def kill_up_with_a_machine(cluster: Rehearsed) -> None:
    """SIGKILL to an `up`, its engine and all parts of that, as soon as the first machine is there."""
    store = cluster.home / "rehearsal" / "store"
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, "up", str(cluster.folder)]
    with subprocess.Popen(argv, env=cluster.env, stdin=quiet, stdout=quiet, stderr=quiet) as child:
        wait_until(lambda: any(store.glob("Instance.*.json")), what="a machine is being made", timeout_s=90)
        for pid in (child.pid, *pids_of(cluster, is_of_a_run)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait(timeout=30)
    wait_until(lambda: not pids_of(cluster, is_of_a_run), what="no part of the run is left", timeout_s=30)


def is_of_a_run(words: Sequence[str]) -> bool:
    """An argv of an engine or of one of its parts."""
    return is_engine(words) or is_part(words)


def only_cluster(cluster: Rehearsed) -> dict[str, Any]:
    """The row of the one cluster that `reap` sees."""
    seen = json.loads(cluster.ok("reap", "--rehearse", "--region", "us-west-2", "--json"))
    assert seen["simulated"] is True
    assert seen["dry_run"] is True
    (row,) = seen["clusters"]
    found: dict[str, Any] = row
    return found


def forget_everything_local(cluster: Rehearsed) -> None:
    """All that a person's computer knew of the cluster is lost, the engine's state too."""
    cluster.lose_home()
    shutil.rmtree(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    for path in cluster.folder.glob("Pulumi.*.yaml"):
        path.unlink()
