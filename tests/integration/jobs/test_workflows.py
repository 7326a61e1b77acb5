"""OSMO workflows on two booted machines with a shared file system: groups, datasets, faults, the guide's own files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl_rehearsal.home import rehearsal_home

from tests.guides import OSMO, needs_guides
from tests.integration.jobs.left_of_job import output_in_the_end
from tests.integration.rehearsed import ROOT, Rehearsed, rehearsed, wait_until

EXAMPLE = ROOT / "examples" / "guides" / "osmo"
SHARING = """\
workflow:
  name: sharing
  resources: {default: {gpu: 4}}
  groups:
  - name: g
    tasks:
    {% for i in range(4) %}
    - name: t{{i}}
      lead: {{ (i == 0) | lower }}
      image: any
      command: [bash, /tmp/run.sh]
      exitActions: {RESTART: '7'}
      files:
      - path: /tmp/run.sh
        contents: |
          echo gpus $CUDA_VISIBLE_DEVICES, in tmp $(ls /tmp), there $(ls {{output}})
          touch /tmp/mine-{{i}} {{output}}/was-here
          [ "$(command -v nslookup)" = /usr/bin/nslookup ] || echo not the real nslookup
          nslookup {{host:t3}} | grep -oP 'Address: \\K\\d[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}' | head -n1
          [ {{i}} != 0 ] || [ -e {{output}}/again ] || { touch {{output}}/again; exit 7; }
    {% endfor %}
"""
STAYING = """\
workflow:
  name: staying
  groups:
  - name: g
    ignoreNonleadStatus: false
    tasks:
    - {name: a, lead: true, image: any, command: [sleep, "600"], outputs: [{dataset: {name: part, path: x}}]}
    - {name: b, image: any, command: [bash, -c], args: ["wc -c <<<$HF_TOKEN; WORK"], credentials: {h: {HF_TOKEN: t}}}
  - name: later
    tasks:
    - {name: c, image: any, command: [echo], inputs: [{task: a}]}
"""
CONTAINED = """\
workflow:
  name: contained
  resources: {default: {gpu: 8}}
  groups:
  - name: g
    ignoreNonleadStatus: false
    tasks:
    {% for name in ["a", "b"] %}
    - name: {{name}}
      lead: {{ (name == "a") | lower }}
      image: test/tools:1
      command: [bash, /tmp/run.sh]
      credentials: {h: {HF_TOKEN: t}}
      volumeMounts: ["/srv/given:/given"]
      inputs: [{url: s3://words/in/}]
      outputs: [{dataset: {name: "of-{{name}}", path: kept}}, {url: "s3://models/{{workflow_id}}/{{name}}"}]
      files:
      - path: /tmp/run.sh
        contents: |
          token=$(echo -n $HF_TOKEN | wc -c)
          found="$(command -v nslookup), $(nslookup {{host:b}} | tail -n2)"
          echo "in $container as $EUID: $(echo /tmp/*), token of $token, $found"
          [ -e /etc/clusterctl/ssh_key ] || echo no key
          echo "read $(<{{input:0}}/a.txt), $(</given/word)"
          echo "{{name}}" >/given/by-{{name}}
          echo $HF_TOKEN >{{output}}/kept
          {% if name == "b" %}until [ -e {{output}}/go ]; do sleep 0.1; done{% endif %}
    {% endfor %}
"""
BUCKETS = """\
workflow:
  name: buckets
  tasks:
  - name: make
    image: any
    command: [sh, -c]
    args:
    - >
      cat {{input:0}}/a.txt {{input:1}}/a.txt; ls {{input:2}}; mkdir {{output}}/deep;
      echo made >{{output}}/deep/model; echo draft >{{output}}/notes; WORK
    volumeMounts: [/srv]
    inputs:
    - {url: s3://words/in/}
    - {url: s3://words/in/a.txt}
    - {url: s3://words/in/, regex: b}
    outputs: [{url: "s3://models/{{workflow_id}}", regex: .*model}]
    checkpoint: [{path: "{{output}}", url: "s3://models/ck-{{workflow_id}}", frequency: 1s, regex: notes}]
"""
MAKE_IMAGE = (
    "set -e; cd /; for program in bash tail wc sleep env nslookup; do set -- $* usr/bin/$program; done; "
    "tar --no-recursion -cf /root/image.tar tmp; tar -rf /root/image.tar bin lib lib64 usr/lib64 usr/bin/python3*"
    " usr/lib/python3* usr/lib/*-linux-gnu $*; podman import -q - test/tools:1 </root/image.tar;"
    " podman save -q -o /shared/image.tar test/tools:1"
)
"""The node's own Python and shell as an image: machines reach no registry."""
TORCHRUN = """\
#!/bin/bash
while [[ $1 = --* ]]; do declare "${1#--}=$2"; shift 2; done
echo "the node's own torchrun: $nproc_per_node ranks"
export WORLD_SIZE=$((nnodes * nproc_per_node)) MASTER_ADDR=$master_addr MASTER_PORT=$master_port
for ((local = 0; local < nproc_per_node; local++)); do
    RANK=$((node_rank * nproc_per_node + local)) python3 "$@" &
done
for job in $(jobs -p); do wait "$job" || exit; done
"""
"""A stand-in for a node's own: it starts ranks by the guide's flags, and loads no torch."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Two booted machines that are up, with a file system that both have."""
    storage = [
        {"mount": "/shared", "efs": {}},
        {"mount": "/words", "s3": {"bucket": "words", "prefix": "in/"}},
        {"mount": "/models", "s3": {"bucket": "models", "writable": True}},
    ]
    with rehearsed(tmp_path_factory.mktemp("workflows"), machines="nspawn", nodes=2, storage=storage) as cluster:
        words = rehearsal_home(cluster.env).buckets / "words" / "in"
        words.mkdir(parents=True)
        (words / "a.txt").write_text("a word\n")
        cluster.up("--yes")
        yield cluster


def newest(cluster: Rehearsed) -> dict[str, Any]:
    """The workflow that something happened to last; empty where there was none yet."""
    found: list[dict[str, Any]] = json.loads(cluster.ok("workflow", "list", "--json"))
    return found[0] if found else {}


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A `workflow submit` under way."""

    process: subprocess.Popen[bytes]
    shown: Path
    """The file with its stderr."""

    def workflow(self) -> str:
        """The workflow's name, once its first group is about to start."""
        begun = ": this command starts its groups"
        wait_until(lambda: begun in self.shown.read_text(), what="the workflow has a name", timeout_s=60)
        return self.shown.read_text().partition(begun)[0].split()[-1]

    def ended(self) -> tuple[int, str]:
        """Its exit code and its stderr."""
        return self.process.wait(timeout=90), self.shown.read_text()


@contextmanager
def submitting(cluster: Rehearsed, file: Path, *flags: str) -> Iterator[Submitted]:
    """A submit that is over afterwards."""
    argv = [str(ROOT / ".venv" / "bin" / "clusterctl"), "workflow", "submit", str(file), *flags]
    env = {**cluster.env, "HF_TOKEN": "very-secret"}
    shown = file.with_suffix(".shown")
    with shown.open("wb") as stderr, subprocess.Popen(argv, env=env, cwd=cluster.folder, stderr=stderr) as process:
        try:
            yield Submitted(process=process, shown=shown)
        finally:
            process.kill()


def show(cluster: Rehearsed, name: str) -> dict[str, Any]:
    """The workflow as the nodes know it."""
    found: dict[str, Any] = json.loads(cluster.ok("workflow", "show", name, "--json"))
    return found


def state_of(cluster: Rehearsed, name: str, task: str) -> str:
    """The task's; empty while no node knows the workflow."""
    found = newest(cluster)
    return str(tasks(found)[task]["state"]) if found.get("id") == name else ""


def tasks(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for group in workflow["groups"] for row in group["tasks"]}


def test_the_examples_one_command_trains_on_two_nodes_and_hands_on_its_model(cluster: Rehearsed) -> None:
    done = cluster.run("workflow", "submit", str(EXAMPLE / "workflow.yaml"), "--on-host")
    assert done.exit_code == 0, done.text
    found = newest(cluster)
    assert found["state"] == "completed"
    assert {row["slot"] for row in tasks(found).values()} == {0, 1}
    logs = cluster.ok("workflow", "logs", found["id"])
    assert "trained on 4 ranks" in logs
    assert "models is kept as /shared/clusterctl/datasets/my-trained-model/1" in logs
    assert re.search(r"\[show\] .*\[[\d.]+, [\d.]+, 10\]", logs), logs


def test_tasks_share_nodes_by_gpus_each_with_its_own_tmp_and_one_that_asks_is_started_again(
    cluster: Rehearsed, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text(SHARING)
    done = cluster.run("workflow", "submit", str(tmp_path / "w.yaml"), "--on-host")
    assert done.exit_code == 0, done.text
    rows = tasks(newest(cluster))
    assert [rows[f"t{i}"]["slot"] for i in range(4)] == [0, 1, 0, 1]
    assert [rows[f"t{i}"]["tries"] for i in range(4)] == [2, 1, 1, 1]
    logs = cluster.ok("workflow", "logs", newest(cluster)["id"])
    assert logs.count("in tmp run.sh,") == 4, logs
    assert "gpus 4,5,6,7" in logs
    assert "there again was-here" in logs.replace("\n", " ")
    address = cluster.inventory()["nodes"][1]["private_ip"]
    assert logs.count(f" {address}\n") == 4, logs
    assert "not the real nslookup" not in logs
    # What the tasks had is not the node's own, and their name servers have ended with them.
    assert output_in_the_end(cluster, "cat /etc/resolv.conf; pgrep -f serve-name[s] || true") == ""


@pytest.mark.parametrize("work", ["exit 3", "sleep 600"])
def test_a_task_that_fails_or_is_cancelled_stops_its_group_and_what_waits_for_it(
    cluster: Rehearsed, tmp_path: Path, work: str
) -> None:
    (tmp_path / "w.yaml").write_text(STAYING.replace("WORK", work))
    argv = ("workflow", "submit", str(tmp_path / "w.yaml"), "--on-host")
    refused = cluster.run(*argv)
    assert refused.exit_code == 2
    assert "task b: HF_TOKEN" in refused.stderr
    with submitting(cluster, tmp_path / "w.yaml", "--on-host") as submitted:
        name = submitted.workflow()
        if work == "sleep 600":
            wait_until(lambda: state_of(cluster, name, "b") == "running", what="both tasks run", timeout_s=60)
            output = cluster.ok("workflow", "exec", name, "b", "--", "sh", "-c", "echo $CLUSTERCTL_JOB; pwd")
            assert output.startswith(tasks(show(cluster, name))["b"]["job"])
            assert "c was not started yet" in cluster.run("workflow", "exec", name, "c", "--", "true").stderr
            assert "cancelled" in cluster.ok("workflow", "cancel", name)
        code, stderr = submitted.ended()
    assert code == (3 if work == "exit 3" else 130), stderr
    assert "very-secret" not in stderr
    found = show(cluster, name)
    assert tasks(found)["a"]["state"] == "cancelled"
    assert tasks(found)["c"]["state"] == "waiting"
    assert found["state"] != "completed"


@pytest.mark.parametrize("work", ["true", "sleep 600"])
def test_a_task_reads_and_fills_buckets_that_nodes_mount_even_if_it_is_cancelled(
    cluster: Rehearsed, tmp_path: Path, work: str
) -> None:
    (tmp_path / "w.yaml").write_text(BUCKETS.replace("WORK", work))
    with submitting(cluster, tmp_path / "w.yaml", "--on-host") as submitted:
        name = submitted.workflow()
        if work != "true":
            wait_until(
                lambda: "a word" in cluster.run("workflow", "logs", name).stdout,
                what="the task has made something",
                timeout_s=60,
            )
            cluster.ok("workflow", "cancel", name)
        code, stderr = submitted.ended()
    assert code == (0 if work == "true" else 130), stderr
    logs = cluster.ok("workflow", "logs", name)
    assert logs.count("a word") == 2, logs
    assert f"{{{{output}}}} is in s3://models/{name}: 1 file" in logs
    kept = f"cd /models/{name} && cat deep/model && ls && cat ../ck-{name}/*/notes && ls ../ck-{name}/*-versions"
    assert cluster.ok("ssh", "--node", "1", "--command", kept).splitlines()[:3] == ["made", "deep", "draft"]
    assert f"checkpoint: /shared/clusterctl/workflows/{name}/make is in s3://models/ck-{name} as {name}-0-" in logs


def test_a_bucket_that_is_not_mounted_or_only_read_is_refused_before_anything_starts(
    cluster: Rehearsed, tmp_path: Path
) -> None:
    text = BUCKETS.replace("s3://words/in/a.txt", "s3://elsewhere/a").replace("s3://models", "s3://words/in")
    (tmp_path / "w.yaml").write_text(text)
    done = cluster.run("workflow", "submit", str(tmp_path / "w.yaml"), "--on-host")
    assert done.exit_code == 2, done.text
    assert "task make: s3://elsewhere/a is not mounted" in done.stderr
    assert "task make: s3://words/in/{{workflow_id}} is mounted read-only" in done.stderr


def test_tasks_run_in_their_images_with_names_storage_and_secrets_and_without_the_nodes_keys(
    cluster: Rehearsed, tmp_path: Path
) -> None:
    given = "mkdir -m 777 /srv/given; echo $(hostname) >/srv/given/word"
    cluster.ok("ssh", "--node", "all", "--sudo", "--command", given)
    cluster.ok("ssh", "--node", "0", "--sudo", "--command", MAKE_IMAGE)
    cluster.ok("ssh", "--node", "1", "--sudo", "--command", "podman load -q -i /shared/image.tar")
    (tmp_path / "w.yaml").write_text(CONTAINED)
    with submitting(cluster, tmp_path / "w.yaml") as submitted:
        name = submitted.workflow()
        wait_until(
            lambda: "no key" in cluster.run("workflow", "logs", name, "--task", "b").stdout,
            what="the second task waits",
            timeout_s=90,
        )
        cluster.ok("ssh", "--node", "0", "--command", f"touch /shared/clusterctl/workflows/{name}/b/go")
        code, stderr = submitted.ended()
    assert code == 0, stderr
    logs = cluster.ok("workflow", "logs", name)
    address = cluster.inventory()["nodes"][1]["private_ip"]
    own_tmp = "in podman as 1000: /tmp/clusterctl-input /tmp/run.sh"
    assert logs.count(f"{own_tmp}, token of 11, /usr/bin/nslookup, Address: {address}") == 2, logs
    assert logs.count("no key") == 2
    assert "very-secret" not in logs
    assert "of-b/1" in logs
    assert all(f"read a word, {cluster.name}-{slot}" in logs for slot in (0, 1)), logs
    made = cluster.ok("ssh", "--node", "all", "--command", "cat /srv/given/by-*")
    assert sorted(line.split()[-1] for line in made.splitlines()) == ["a", "b"]
    assert cluster.ok("ssh", "--node", "0", "--command", f"cat /models/{name}/*/kept").split() == ["very-secret"] * 2
    left = cluster.ok("ssh", "--node", "all", "--sudo", "--command", "podman ps --all --quiet")
    assert left.strip() == ""


def test_what_does_not_fit_is_refused_before_anything_starts(cluster: Rehearsed) -> None:
    before = len(json.loads(cluster.ok("workflow", "list", "--json")))
    file = str(EXAMPLE / "workflow.yaml")
    for flags, reason in (
        (("--on-host", "--set", "n_nodes=3", "n_gpus_per_node=8"), "no node is left for worker_2"),
        (("--on-host", "--set", "n_gpus_per_node=9"), "task master: gpu: 9 is more than the 8 of a node (p5.48xlarge)"),
        (("--on-host", "--set", "n_node=3"), "(did you mean n_nodes?)"),
    ):
        done = cluster.run("workflow", "submit", file, *flags)
        assert done.exit_code == 2, done.text
        assert reason in done.stderr
    assert len(json.loads(cluster.ok("workflow", "list", "--json"))) == before


def submit_guides_own(cluster: Rehearsed, tmp_path: Path, block: int, *flags: str) -> str:
    """The logs of the tasks of one of the guide's files, which must succeed; `block`: which file."""
    blocks = re.findall(r"\.\. code-block:: (?:yaml|jinja)\n\n((?:  .*\n|\n)+)", OSMO.read_text())
    (tmp_path / "w.yaml").write_text(textwrap.dedent(blocks[block]))
    shutil.copy(EXAMPLE / "train.py", tmp_path)
    done = cluster.run("workflow", "submit", str(tmp_path / "w.yaml"), "--on-host", *flags, timeout_s=280)
    assert done.exit_code == 0, done.text
    return cluster.ok("workflow", "logs", newest(cluster)["id"])


@needs_guides
@pytest.mark.torch
def test_the_guides_first_file_trains_by_torchs_own_launcher(cluster: Rehearsed, tmp_path: Path) -> None:
    assert "trained on 16 ranks" in submit_guides_own(cluster, tmp_path, 0)


@needs_guides
def test_the_guides_file_for_any_number_of_nodes_trains_by_the_nodes_torchrun(
    cluster: Rehearsed, tmp_path: Path
) -> None:
    own = "/usr/local/bin/torchrun"
    put = f"printf %s {shlex.quote(TORCHRUN)} >{own} && chmod 755 {own}"
    cluster.ok("ssh", "--node", "all", "--sudo", "--command", put)
    try:
        flags = ("--set", "n_gpus_per_node=4", "n_nodes=2")
        logs = submit_guides_own(cluster, tmp_path, 1, *flags)
    finally:
        cluster.ok("ssh", "--node", "all", "--sudo", "--command", f"rm {own}")
    assert "trained on 8 ranks" in logs
    assert logs.count("the node's own torchrun: 4 ranks") == 2, logs
