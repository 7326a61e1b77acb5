"""The job that a task becomes: its files, inputs, outputs and checkpoints as the nodes get them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any  # JSON

from clusterctl.on_node.workflow.command import STOP_S
from clusterctl.workflows.buckets import BucketMount
from clusterctl.workflows.placement import Placed, place, rooms_of
from clusterctl.workflows.task_job import Gate, Run, needs_share, staged, task_request, values_of

from tests.unit.cli.workflows.workflow_files import SCALED, SMALL, inventory, read

CHAIN = """\
workflow:
  name: chain
  tasks:
  - {name: first, image: i, command: [make]}
  - name: second
    image: i
    command: [use]
    args: ["{{input:0}}", "{{input:first}}", "{{input:1}}"]
    environment: {OUT: "{{output}}"}
    credentials: {hub: {HF_TOKEN: token}}
    inputs: [{task: first}, {dataset: {name: "words:3"}}]
"""


def run(text: str, share: str | None = "/shared", *, has_containers: bool = False) -> Run:
    return Run(
        id="w-1a2b",
        uuid="u1",
        loaded=read(text),
        inventory=inventory(2),
        share=share,
        plans=(),
        has_containers=has_containers,
        by="ada@desk (1)",
    )


def placed(run: Run, group: int) -> tuple[Placed, ...]:
    workflow = run.loaded.workflow
    return place(workflow.all_groups()[group].tasks, workflow.resources, rooms_of(run.inventory, None))


def words(own: Run, group: int, task: int, gate: Gate | None = None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the task's main program reads, and its files."""
    together = placed(own, group)
    values = values_of(own, together, together[task], "w-1a2b-0")
    with staged(own, together[task], "w-1a2b-0", values, gate) as snapshot:
        found = {name: (snapshot.folder / name).read_bytes() for name in snapshot.files}
        assert os.access(snapshot.folder / "clusterctl-task/bin/nslookup", os.X_OK)
    return json.loads(found["clusterctl-task/task.json"]), found


def test_tokens_are_resolved_in_files_too_local_ones_included() -> None:
    found, files = words(run(SCALED), 0, 1)
    master = placed(run(SCALED), 0)[0].node.name
    rows = {row["path"]: files["clusterctl-task/" + row["source"]].decode() for row in found["files"]}
    assert rows["/tmp/run.sh"] == (
        f"train --of 2 --rank 1 --to {master} --out /shared/clusterctl/workflows/w-1a2b/worker_1/models\n"
    )
    assert rows["/tmp/train.py"] == f"print('{master}')"
    assert found["command"] == ["bash", "/tmp/run.sh"]


def test_outputs_are_versions_of_datasets_on_shared_storage() -> None:
    found, _ = words(run(SCALED), 0, 0)
    row = {"path": "models", "dataset": "/shared/clusterctl/datasets/model-u1", "version": "w-1a2b-0-u1-0"}
    assert found["outputs"] == [{**row, "regex": ""}]


def test_inputs_are_links_to_what_a_task_put_out_and_to_a_dataset() -> None:
    found, _ = words(run(CHAIN), 1, 0)
    link = "/tmp/clusterctl-input/"
    assert found["command"] == ["use", link + "0", link + "0", link + "1"]
    assert found["inputs"] == [
        {"link": link + "0", "path": "/shared/clusterctl/workflows/w-1a2b/first", "regex": ""},
        {"link": link + "1", "dataset": "/shared/clusterctl/datasets/words", "version": "3", "regex": ""},
    ]


def test_without_shared_storage_an_output_is_on_the_nodes_own_disk_and_inputs_need_it() -> None:
    found, _ = words(run(SMALL, share=None), 0, 0)
    assert found["output"] == "/var/lib/clusterctl/jobs/w-1a2b-0/work/output"
    assert needs_share(read(SMALL)) == []
    assert needs_share(read(CHAIN)) == ["task second: inputs"]


def test_a_group_waits_at_its_leads_port() -> None:
    gate = Gate(names=("master", "worker_1"), connect="10.0.0.1", port=28007)
    found, _ = words(run(SCALED), 0, 1, gate)
    assert {key: found["barrier"][key] for key in ("names", "rank", "connect", "port")} == {
        "names": ["master", "worker_1"],
        "rank": 1,
        "connect": "10.0.0.1",
        "port": 28007,
    }
    assert words(run(SCALED), 0, 1)[0]["barrier"] == {}


def test_a_task_is_a_plain_job_with_its_own_tmp_that_remembers_its_workflow() -> None:
    own = replace(run(CHAIN), plans=({"name": "second"},))
    together = placed(own, 1)
    values = values_of(own, together, together[0], "w-1a2b-1")
    group = own.loaded.workflow.all_groups()[1]
    request = task_request(own, group, together[0], "w-1a2b-1", tries=2, values=values, secrets=["HF_TOKEN"])
    assert (request.launch.launcher, request.nproc, request.gpus, request.has_own_tmp) == ("plain", "1", None, True)
    assert request.environment == {
        "OUT": "/shared/clusterctl/workflows/w-1a2b/second",
        "CLUSTERCTL_GROUP_TASKS": "second",
    }
    assert request.secrets == ("HF_TOKEN",)
    assert request.grace_s == STOP_S + 30.0, "its outputs are kept after its command was stopped"
    assert request.workflow == {
        "id": "w-1a2b",
        "name": "chain",
        "group": "second",
        "task": "second",
        "tries": 2,
        "plans": [{"name": "second"}],
    }


def test_a_task_in_a_container_has_its_image_whose_tmp_is_its_own() -> None:
    own = run(CHAIN, has_containers=True)
    together = placed(own, 1)
    values = values_of(own, together, together[0], "w-1a2b-1")
    group = own.loaded.workflow.all_groups()[1]
    request = task_request(own, group, together[0], "w-1a2b-1", tries=1, values=values, secrets=[])
    assert (request.image, request.has_own_tmp) == ("i", False)


ALL_KEPT = """\
workflow:
  name: w
  tasks:
  - name: only
    image: i
    command: [train]
    volumeMounts: [/opt, "/data:/in"]
    inputs: [{dataset: {name: "words:{{uuid}}", regex: a}}]
    outputs: [{dataset: {name: model, regex: ".*pt"}}, {url: "s3://models/x", regex: b}]
    checkpoint: [{path: "{{output}}/ck", url: "s3://models/{{workflow_id}}/", frequency: 30m, regex: c}]
  - {name: next, image: i, command: [use], inputs: [{task: only, regex: d}]}
"""
MODELS = BucketMount(path="/models", bucket="models", prefix="", is_writable=True)


def test_with_a_bucket_for_workflows_datasets_and_outputs_are_versions_there() -> None:
    own = replace(run(ALL_KEPT, share=None), buckets=(MODELS,), storage="/models/flows")
    found, _ = words(own, 0, 0)
    output = "/var/lib/clusterctl/jobs/w-1a2b-0/work/output"
    assert found["output"] == output
    assert found["inputs"] == [
        {"link": "/tmp/clusterctl-input/0", "bucket": "/models/flows/datasets/words", "version": "u1", "regex": "a"}
    ]
    assert found["outputs"] == [
        {"path": "", "bucket": "/models/flows/datasets/model", "version": "w-1a2b-0-u1-0", "regex": ".*pt"},
        {"url": "s3://models/x", "folder": "/models/x", "regex": "b"},
        {"path": "", "bucket": "/models/flows/workflows/w-1a2b/only", "version": "w-1a2b-0-u1-2", "regex": ""},
    ]
    row = {"link": "/tmp/clusterctl-input/0", "bucket": "/models/flows/workflows/w-1a2b/only", "version": ""}
    assert words(own, 1, 0)[0]["inputs"] == [{**row, "regex": "d"}]
    assert found["checkpoints"] == [
        {
            "path": f"{output}/ck",
            "url": "s3://models/w-1a2b/",
            "folder": "/models/w-1a2b",
            "frequency_s": 1800.0,
            "regex": "c",
            "version": "w-1a2b-0-u1-0",
        }
    ]


def test_where_nodes_share_a_file_system_too_outputs_stay_there_and_datasets_are_in_the_bucket() -> None:
    own = replace(run(ALL_KEPT), buckets=(MODELS,), storage="/models/flows")
    found, _ = words(own, 0, 0)
    assert found["output"] == "/shared/clusterctl/workflows/w-1a2b/only"
    assert [each.get("bucket") for each in found["outputs"]] == ["/models/flows/datasets/model", None]
    assert words(own, 1, 0)[0]["inputs"][0]["path"] == found["output"]


def test_folders_of_the_node_are_mounted_into_containers_and_looked_at_in_any_case() -> None:
    for has_containers, volumes in ((True, (("/opt", "/opt"), ("/data", "/in"))), (False, ())):
        own = replace(run(ALL_KEPT, has_containers=has_containers), buckets=(MODELS,))
        together = placed(own, 0)
        values = values_of(own, together, together[0], "w-1a2b-0")
        group = own.loaded.workflow.all_groups()[0]
        request = task_request(own, group, together[0], "w-1a2b-0", tries=1, values=values, secrets=[])
        assert request.volumes == volumes
        assert words(own, 0, 0)[0]["mounts"] == ["/opt", "/in"]
