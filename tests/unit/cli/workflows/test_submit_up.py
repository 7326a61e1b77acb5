"""`workflow submit --up STACK`: the planned cluster is checked before it is made, and what goes on running is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusterctl.home import Home
from clusterctl.workflows.submit import StackToBringUp
from clusterctl.workflows.submit_up import goes_on, planned_cluster
from clusterctl_infra.errors import ConfigError

from tests.inventories import make_inventory
from tests.unit.cli.workflows.workflow_files import SCALED, SMALL, read

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CLUSTER = """\
name: train
region: us-west-2
zone: us-west-2b
nodes: 2
instance_type: p5.48xlarge
access: {mode: private}
caps: {runtime: 12h}
"""
SHARED = CLUSTER + "storage: [{mount: /data, s3: {bucket: words}}, {mount: /shared, efs: {}}]\n"
BUCKET = CLUSTER + "storage: [{mount: /models, s3: {bucket: models, writable: true}}]\n"
IN_BUCKET = BUCKET + "workflow_storage: s3://models/workflows\n"
FROM_BUCKET = """\
workflow:
  name: w
  tasks: [{name: only, image: i, command: [cat], inputs: [{url: s3://words/in}, {url: s3://models/a}]}]
"""


def cluster_of(tmp_path: Path, workflow: str, text: str, *words: str) -> str:
    (tmp_path / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    (tmp_path / "cluster.yaml").write_text(text)
    stack = StackToBringUp(folder=tmp_path, is_rehearsed=True, is_agreed=False)
    return planned_cluster(read(workflow, *words), stack, home=Home(path=tmp_path / "home"), now=NOW)


def test_a_cluster_that_could_run_the_workflow_is_known_by_the_name_it_will_have(tmp_path: Path) -> None:
    assert cluster_of(tmp_path, SMALL, CLUSTER) == "train@rehearsal"
    assert cluster_of(tmp_path, SCALED, SHARED) == "train@rehearsal"
    assert cluster_of(tmp_path, SCALED, IN_BUCKET) == "train@rehearsal"


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["n_gpus=9"], SHARED, "task master: gpu: 9 is more than the 8 of a node (p5.48xlarge)"),
        (["n_nodes=3"], SHARED, "no node is left for worker_2"),
        ([], CLUSTER, "task master: outputs lie there"),
        ([], BUCKET, "task master: outputs lie there"),
    ],
)
def test_a_workflow_that_the_planned_nodes_could_not_run_costs_nothing(
    tmp_path: Path, words: list[str], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match="nothing was started") as raised:
        cluster_of(tmp_path, SCALED, text, *words)
    assert message in "\n".join(raised.value.problems)
    assert raised.value.hint == f"clusterctl plan {tmp_path} --rehearse"


def test_a_bucket_that_the_planned_nodes_will_not_mount_is_named_with_the_key_that_helps(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not mount what these URLs need \(cluster.yaml, storage: ") as raised:
        cluster_of(tmp_path, FROM_BUCKET, SHARED)
    assert raised.value.problems == ("  task only: s3://models/a is not mounted",)
    assert raised.value.hint == f"clusterctl plan {tmp_path} --rehearse"


def test_what_stays_is_told_with_its_price_its_end_and_what_ends_it() -> None:
    text = goes_on(make_inventory(size=4), now=NOW)
    assert text.splitlines() == [
        "train: 4 nodes still running, $220.16/h until 22:00 UTC, in 12 h at the latest",
        "  next: clusterctl down --cluster train",
    ]
    rehearsed = make_inventory(size=1, rehearsal=True, cluster="train@rehearsal")
    assert "train@rehearsal: 1 node still running, $220.16/h (simulated)" in goes_on(rehearsed, now=NOW)
    over = datetime(2026, 11, 22, tzinfo=UTC)
    assert "ended at 2026-11-21 22:00 UTC, the deadline" in goes_on(make_inventory(), now=over)
