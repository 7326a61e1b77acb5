"""A workflow file that is read, or refused with all its mistakes at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.workflows.loading import Settings, load_workflow
from clusterctl.workflows.template import render
from clusterctl_infra.errors import ConfigError

from tests.guides import needs_guides
from tests.unit.cli.workflows.workflow_files import SCALED, SMALL, guide_files, problems, read


@needs_guides
def test_the_guides_two_files_are_valid_as_they_are_printed() -> None:
    two_nodes, scaled = guide_files()
    assert [task.name for task in read(two_nodes).workflow.all_tasks()] == ["master", "worker"]
    assert [task.name for task in read(scaled).workflow.all_tasks()] == ["master", "worker_1"]


@needs_guides
def test_the_guides_scaled_file_takes_the_values_of_its_command_line() -> None:
    loaded = read(guide_files()[1], "n_nodes=4", "n_gpus_per_node=4")
    assert [task.name for task in loaded.workflow.all_tasks()] == ["master", "worker_1", "worker_2", "worker_3"]
    assert loaded.workflow.resources["default"].gpu == 4
    assert b"--nnodes 4 --nproc_per_node 4 --node_rank 3" in loaded.contents["worker_3", "/tmp/run.sh"]


def test_a_local_file_is_read_after_jinja_so_its_braces_stay() -> None:
    loaded = read(SCALED, files={"train.py": b"f'{{x}}' {% if %}"})
    assert loaded.contents["master", "/tmp/train.py"] == b"f'{{x}}' {% if %}"


def test_values_are_read_with_their_units() -> None:
    resources = read(SCALED).workflow.resources["default"]
    assert (resources.gpu, resources.cpu, resources.memory) == (8, 4.0, 8192)


def test_a_task_that_stands_alone_is_a_group_that_it_leads() -> None:
    (group,) = read(SMALL).workflow.all_groups()
    assert (group.name, group.lead.name, group.has_barrier) == ("only", "only", False)


def test_set_env_is_in_every_task() -> None:
    assert all(task.environment == {"A": "1"} for task in read(SCALED, A="1").workflow.all_tasks())


def test_all_problems_are_told_at_once_with_their_lines_and_what_a_loop_repeats_once() -> None:
    text = SCALED.replace("image:", "imag:").replace("gpu:", "gpux:").replace("lead: true", "lead: maybe")
    assert problems(text) == [
        "line 4 workflow.resources.default.gpux: unknown key (did you mean gpu?)",
        "line 9 workflow.groups[0].tasks[0].image: missing",
        "line 11 workflow.groups[0].tasks[0].lead: 'maybe': write true or false",
        "line 14 workflow.groups[0].tasks[0].imag: unknown key (did you mean image?)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("workflow:", "workflows:", "line 1 workflows: unknown key (did you mean workflow?)"),
        (
            "name: small",
            "name: 1st",
            "line 2 workflow.name: '1st': letters, digits, - and _, a letter first, at most 63",
        ),
        ("[echo]", "[]", "line 4 workflow.tasks[0]: command: write at least a program"),
        ("[echo]", "echo", "line 6 workflow.tasks[0].command: 'echo': not a list: write [a, b], or one entry a line"),
        ("[echo]", "[echo]\n    kpis: [{index: a, path: b}]", "line 7 workflow.tasks[0].kpis: not built yet"),
        (
            "[echo]",
            "[echo]\n    volumeMounts: [/opt, '/data:/opt']",
            "line 7 workflow.tasks[0].volumeMounts: /opt: mounted twice",
        ),
        (
            "[echo]",
            "[echo]\n    checkpoint: [{path: models, url: s3://words/c, frequency: 5m}]",
            "line 7 workflow.tasks[0].checkpoint[0].path: 'models': write an absolute path",
        ),
        (
            "[echo]",
            "[echo]\n    checkpoint: [{path: /m, url: gs://words/c, frequency: 5m}]",
            "line 7 workflow.tasks[0].checkpoint[0].url: 'gs://words/c': gs:// is not built yet",
        ),
        (
            "[echo]",
            "[echo]\n    checkpoint: [{path: /m, url: s3://words/c, frequency: 0.5}]",
            "line 7 workflow.tasks[0].checkpoint[0].frequency: '0.5': write at least 1s",
        ),
        (
            "[echo]",
            "[echo]\n    outputs: [{url: s3://words/c, regex: '*.pt'}]",
            "line 7 workflow.tasks[0].outputs[0].regex: '*.pt': not a regular expression: nothing to repeat",
        ),
        (
            "[echo]",
            "[echo]\n    outputs: [{url: s3://words/c, regex: '[[a]', update: 1}]",
            "line 7 workflow.tasks[0].outputs[0].update: unknown key",
        ),
        (
            "[echo]",
            "[echo]\n    inputs: [{dataset: {name: a}, regex: a}]",
            "line 7 workflow.tasks[0].inputs[0].regex: write it below dataset",
        ),
        ("[echo]", "[echo]\n    privileged: true", "line 7 workflow.tasks[0].privileged: tasks run as the login user"),
        ("[echo]", "[echo]\n    checkpoint: [{}]", "line 7 workflow.tasks[0].checkpoint[0].path: missing"),
        (
            "[echo]",
            "[echo]\n    inputs: [{url: gs://words/a}]",
            "line 7 workflow.tasks[0].inputs[0].url: 'gs://words/a': gs:// is not built yet; write s3://BUCKET/PATH",
        ),
        ("[echo]", "[echo]\n    inputs: [{}]", "line 7 workflow.tasks[0].inputs[0]: write task or dataset or url"),
        (
            "[echo]",
            "[echo]\n    inputs: [{task: onl}]",
            "line 7 workflow.tasks[0].inputs[0].task: 'onl': no such task (did",
        ),
        (
            "[echo]",
            "[echo]\n    inputs: [{task: only}]",
            "line 7 workflow.tasks[0].inputs[0].task: 'only': in the same",
        ),
        (
            "[echo]",
            "[echo]\n    outputs: [{dataset: {name: a/b}}]",
            "line 7 workflow.tasks[0].outputs[0].dataset.name: 'a/b': a bucket",
        ),
        (
            "[echo]",
            "[echo]\n    outputs: [{dataset: {name: a, path: ../b}}]",
            "line 7 workflow.tasks[0].outputs[0].dataset.path: '../b'",
        ),
        (
            "[echo]",
            "[echo]\n    files: [{path: /etc/x, contents: a}]",
            "line 7 workflow.tasks[0].files[0].path: '/etc/x': a task's files go below /tmp/",
        ),
        (
            "[echo]",
            "[echo]\n    files: [{path: /tmp/x, localpath: no.py}]",
            "line 7 workflow.tasks[0].files[0].localpath: 'no.py': No such file",
        ),
        (
            "[echo]",
            "[echo]\n    files: [{path: /tmp/x, localpath: a, contents: b}]",
            "line 7 workflow.tasks[0].files[0]: contents and localpath do not go",
        ),
        (
            "[echo]",
            "[echo]\n    files: [{path: /tmp/x, contents: '?', base64: true}]",
            "line 7 workflow.tasks[0].files[0].contents: not base64",
        ),
        (
            "[echo]",
            "[echo]\n    environment: {RANK: '1'}",
            "line 7 workflow.tasks[0].environment.RANK: the task's job sets it",
        ),
        (
            "[echo]",
            "[echo]\n    environment: {CLUSTERCTL_GROUP_KEY: '1'}",
            "line 7 workflow.tasks[0].environment.CLUSTERCTL_GROUP_KEY: the task's job sets it",
        ),
        (
            "[echo]",
            '[echo]\n    environment: {A: "b\\0c"}',
            "line 7 workflow.tasks[0].environment.A: a value has no NUL character",
        ),
        (
            "[echo]",
            "[echo]\n    credentials: {hub: {PET_NNODES: nodes}}",
            "line 7 workflow.tasks[0].credentials.hub.PET_NNODES: the task's job sets it itself",
        ),
        (
            "[echo]",
            "[echo]\n    credentials: {hub: {RANK: rank}}",
            "line 7 workflow.tasks[0].credentials.hub.RANK: the task's job sets it itself",
        ),
        (
            "[echo]",
            "[echo]\n    environment: {HF_TOKEN: a}\n    credentials: {hub: {HF_TOKEN: token}}",
            "line 8 workflow.tasks[0].credentials.hub.HF_TOKEN: set twice for the task",
        ),
        (
            "[echo]",
            "[echo]\n    credentials: {hub: /root/key}",
            "line 7 workflow.tasks[0].credentials.hub: a credential as a file",
        ),
        (
            "[echo]",
            "[echo]\n    args: ['{{host:other}}']",
            "line 7 workflow.tasks[0].args[0]: {{host:other}}: no task 'other' in the group only",
        ),
        (
            "[echo]",
            "[echo]\n    args: ['{{input:0}}']",
            "line 7 workflow.tasks[0].args[0]: {{input:0}}: the task has 0 inputs",
        ),
        ("[echo]", "[echo]\n    resource: big", "line 7 workflow.tasks[0].resource: 'big': not in resources"),
        (
            "[echo]",
            "[echo]\n    exitActions: {RESTRT: 1}",
            "line 7 workflow.tasks[0].exitActions: RESTRT: no action (did you mean RESTART?)",
        ),
        (
            "[echo]",
            "[echo]\n    exitActions: {FAIL: 1-3, RESTART: 3}",
            "line 7 workflow.tasks[0].exitActions: FAIL and RESTART both have the exit code 3",
        ),
        (
            "[echo]",
            "[echo]\n    exitActions: {FAIL: 3-1}",
            "line 7 workflow.tasks[0].exitActions: FAIL: 3-1: exit codes go from 0 to 255",
        ),
        (
            "name: small",
            "name: small\n  resources: {default: {memory: 3gi}}",
            "line 3 workflow.resources.default.memory: '3gi': write a size such as 30Gi",
        ),
        ("name: small", "name: small\n  pool: a", "line 3 workflow.pool: pools are OSMO's"),
        (
            "name: small",
            "name: small\n  groups: [{name: g, tasks: []}]",
            "line 3 workflow.groups[0]: tasks: write at least one",
        ),
        ("name: only", "name: a, b", "line 4 workflow.tasks[0].name: 'a, b': letters"),
        ("workflow:", "workflow: [", "line 3 not YAML: while parsing a flow sequence, expected ',' or ']'"),
    ],
)
def test_each_mistake_has_a_sentence_with_its_line(old: str, new: str, problem: str) -> None:
    (found, *_) = problems(SMALL.replace(old, new))
    assert found.startswith(problem)


def test_a_local_files_tokens_are_checked_too() -> None:
    text = SMALL + "    files: [{path: /tmp/t.py, localpath: train.py}]\n"
    problem = "train.py: {{host:master}}: no task 'master' in the group only"
    assert problems(text) == [f"line 7 workflow.tasks[0].files[0].localpath: {problem}"]


@pytest.mark.parametrize("name", ["../key", "link", "{outside}"])
def test_a_workflow_sends_no_file_from_outside_its_folder(tmp_path: Path, name: str) -> None:
    folder, key = tmp_path / "theirs", tmp_path / "key"
    folder.mkdir()
    key.write_text("mine")
    (folder / "link").symlink_to(key)
    (folder / "train.py").touch()
    file = folder / "workflow.yaml"
    file.write_text(SMALL + f"    files: [{{path: /tmp/t, localpath: {name.format(outside=key)}}}]\n")
    with pytest.raises(ConfigError) as caught:
        load_workflow(file, Settings(environment={}), rendering=render)
    assert "outside the folder of the workflow's file and its git checkout" in str(caught.value.problems)
    file.write_text(SMALL + "    files: [{path: /tmp/t, localpath: train.py}]\n")
    assert load_workflow(file, Settings(environment={}), rendering=render).contents
    (tmp_path / ".git").mkdir()
    file.write_text(SMALL + "    files: [{path: /tmp/t, localpath: link}]\n")
    assert list(load_workflow(file, Settings(environment={}), rendering=render).contents.values()) == [b"mine"]


@pytest.mark.parametrize(
    ("leads", "problem"),
    [
        (("", ""), "group g: no task leads; one of its 2 has lead: true"),
        ((", lead: true", ", lead: true"), "group g: a and b both lead; one task of a group has lead: true"),
    ],
)
def test_a_group_has_one_lead(leads: tuple[str, str], problem: str) -> None:
    tasks = "".join(
        f"    - {{name: {name}, image: i, command: [echo]{lead}}}\n" for name, lead in zip("ab", leads, strict=True)
    )
    assert problems(f"workflow:\n  name: w\n  groups:\n  - name: g\n    tasks:\n{tasks}") == [
        f"line 4 workflow.groups[0]: {problem}"
    ]


def test_tasks_that_wait_for_each_other_are_told_as_a_circle() -> None:
    tasks = "".join(
        f"  - {{name: {name}, image: i, command: [echo], inputs: [{{task: {other}}}]}}\n"
        for name, other in (("a", "b"), ("b", "a"))
    )
    assert problems(f"workflow:\n  name: w\n  tasks:\n{tasks}") == [
        "line 1 workflow.groups: they wait for each other by their inputs: a → b → a"
    ]


NO_WORKFLOW = "no workflow: write the key workflow, and below it name and groups"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", NO_WORKFLOW),
        ("4\n", NO_WORKFLOW),
        ("- a\n", NO_WORKFLOW),
        ("workflow:\n", "line 1 workflow: empty; give a value or leave the key out"),
        (
            "workflow: 4\n",
            "line 1 workflow: '4': not a mapping with keys backend, groups, name, pool, resources, tasks, timeout",
        ),
        ("workflow: b: c\n", "line 1 not YAML: mapping values are not allowed here"),
    ],
)
def test_what_is_no_workflow_at_all_is_told_in_one_sentence(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        ("/data", ""),
        ("/data:/in/the/container", ""),
        ("/dev/shm", ""),
        ("data", "write an absolute path"),
        ("/data/../etc", "write an absolute path"),
        ("/data:", "write FOLDER or FOLDER:PLACE"),
        ("/a:/b:/c", "write FOLDER or FOLDER:PLACE"),
        ("/a,b", "docker and podman take no comma and no quote"),
        ("/etc/clusterctl:/x", "/etc/clusterctl: no task mounts /etc/clusterctl"),
        ("/etc:/x", "/etc: no task mounts /etc/clusterctl"),
        ("/:/x", "write an absolute path"),
        ("/var/run/docker.sock", "no task mounts /var/run"),
        ("/run/clusterctl/job-secrets:/x", "no task mounts /run"),
        ("/var/lib/clusterctl/jobs", "no task mounts /var/lib/clusterctl"),
        ("/opt:/proc/x", "no task mounts /proc"),
        ("/opt:/tmp", "/tmp: the image, or the task, has its own"),
        ("/opt:/usr", "/usr: the image, or the task, has its own"),
    ],
)
def test_a_task_mounts_folders_of_its_node_but_not_those_with_keys(mount: str, problem: str) -> None:
    found = problems(SMALL.replace("[echo]", f"[echo]\n    volumeMounts: ['{mount}']"))
    assert [problem in each for each in found] == ([True] if problem else []), found
