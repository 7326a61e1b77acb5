"""What a container engine is asked for, for docker and podman, and how processes in containers are known again."""

from __future__ import annotations

import itertools
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from clusterctl.on_node.job.container import (
    Bind,
    ContainerRequest,
    has_image,
    has_nvidia,
    present_binds,
    present_devices,
    renumbered,
    run_argv,
)
from clusterctl.on_node.job.job_containers import (
    JobContainers,
    variables_inside,
    volume_binds,
)
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.own_python import write_python
from clusterctl.on_node.job.processes import seen_from_here
from clusterctl.on_node.job.shared_storage import shared_paths

from tests.unit.cli.jobs.job_specs import spec

PROGRAM = ["python3", "-IS", "/programs/1.pyz", "inside", "/jobs/first/environment-0.json", "--", "a.py", "two words"]
REQUEST = ContainerRequest(
    engine="docker",
    image_id="sha256:0123",
    job="first",
    name="clusterctl-first-1-0",
    uid=1000,
    gid=1001,
    groups=(4, 27),
    folder="/jobs/first/code",
    binds=(Bind("/jobs/first"), Bind("/jobs/first/code", is_writable=True)),
    devices=("/dev/infiniband",),
)
BEFORE = [
    *("run", "--rm", "--pull", "never", "--name", "clusterctl-first-1-0"),
    *("--label", "clusterctl.job=first", "--env", "CLUSTERCTL_JOB=first", "--network", "host", "--ipc", "host"),
    *("--log-driver", "none"),
    *("--user", "1000:1001", "--group-add", "4", "--group-add", "27"),
    *("--security-opt", "no-new-privileges", "--cap-drop", "all"),
]
BEHIND = [
    *("--device", "/dev/infiniband"),
    *("--mount", "type=bind,source=/jobs/first,target=/jobs/first,readonly"),
    *("--mount", "type=bind,source=/jobs/first/code,target=/jobs/first/code"),
    *("--workdir", "/jobs/first/code", "--entrypoint", "python3", "sha256:0123", *PROGRAM[1:]),
]
DOCKER_LIMITS = [
    "--ulimit",
    "memlock=-1:-1",
    "--ulimit",
    "stack=67108864:67108864",
    "--ulimit",
    "nofile=1048576:1048576",
]


@pytest.mark.parametrize(
    ("indices", "asked"),
    [((), []), (None, ["--gpus", "all"]), ((4, 5), ["--gpus", '"device=4,5"'])],
)
def test_docker_is_asked_for_the_gpus_of_the_job(indices: tuple[int, ...] | None, asked: list[str]) -> None:
    argv = run_argv(REQUEST._replace(gpu_indices=indices), PROGRAM)
    assert argv == ["docker", *BEFORE, *DOCKER_LIMITS, *asked, *BEHIND]


@pytest.mark.parametrize(
    ("indices", "asked"),
    [
        ((), []),
        (None, ["--device", "nvidia.com/gpu=all"]),
        ((4, 5), ["--device", "nvidia.com/gpu=4", "--device", "nvidia.com/gpu=5"]),
    ],
)
def test_podman_has_gpus_by_name_and_the_limits_of_the_job(indices: tuple[int, ...] | None, asked: list[str]) -> None:
    argv = run_argv(REQUEST._replace(engine="podman", gpu_indices=indices), PROGRAM)
    assert argv == ["podman", *BEFORE, "--ulimit", "host", *asked, *BEHIND]


@pytest.mark.parametrize("path", ["/data,type=tmpfs", '/da"ta'])
def test_a_path_that_an_engine_reads_as_several_words_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be in a container"):
        run_argv(REQUEST._replace(binds=(Bind(path),)), PROGRAM)


def test_the_key_to_other_nodes_stays_outside_and_storage_comes_in(tmp_path: Path) -> None:
    contract = tmp_path / "etc/clusterctl"
    contract.mkdir(parents=True)
    for name in ("env", "hostfile", "ssh_key", "barrier"):
        (contract / name).touch()
    (contract / "node.json").write_text(f'{{"mounts": [{{"path": "{tmp_path}/shared"}}]}}')
    found = present_binds(tmp_path, shared_paths(Layout(tmp_path)))
    assert found == (
        Bind(f"{contract}/env"),
        Bind(f"{contract}/hostfile"),
        Bind(f"{contract}/node.json"),
        Bind(f"{tmp_path}/shared", is_writable=True),
    )


@pytest.mark.parametrize("text", ["[1]", '{"mounts": 5}', '{"mounts": [{}]}', "{"])
def test_a_plan_that_cannot_be_read_names_no_storage(tmp_path: Path, text: str) -> None:
    (tmp_path / "etc/clusterctl").mkdir(parents=True)
    Layout(tmp_path).node_file.write_text(text)
    assert shared_paths(Layout(tmp_path)) == ()


def test_devices_are_those_that_the_node_has(tmp_path: Path) -> None:
    assert (present_devices(tmp_path), has_nvidia(tmp_path)) == ((), False)
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    (tmp_path / "dev/nvidiactl").touch()
    assert (present_devices(tmp_path), has_nvidia(tmp_path)) == ((f"{tmp_path}/dev/infiniband",), True)


def test_in_a_container_a_jobs_gpus_are_counted_from_0() -> None:
    members = [{"slot": 0, "gpu_indices": [4, 5]}, {"slot": 1, "gpu_indices": None}, {"slot": 2}]
    seen = renumbered({"job": "first", "members": members})
    assert seen == {
        "job": "first",
        "members": [{"slot": 0, "gpu_indices": [0, 1]}, {"slot": 1, "gpu_indices": None}, {"slot": 2}],
    }


def process(proc: Path, pid: int, inside: int, start: int) -> None:
    """Adds to `proc` the process `pid`, whose number in its own PID namespace is `inside`."""
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "status").write_text(f"Name:\tpython3\nNSpid:\t{pid}\t{inside}\nThreads:\t1\n")
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S 1 {'0 ' * 17}{start} 0 0\n")


def test_a_process_in_a_container_is_known_by_its_number_there_and_its_first_tick(tmp_path: Path) -> None:
    process(tmp_path, 500, inside=2, start=70)
    process(tmp_path, 501, inside=2, start=71)
    process(tmp_path, 502, inside=3, start=71)
    assert seen_from_here((2, 71), [500, 501, 502, 999], tmp_path) == (501, 71)
    assert seen_from_here((4, 71), [500, 501, 502, 999], tmp_path) == (4, 71)


def test_a_node_knows_which_jobs_have_containers(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert not has_image(layout, "first")
    layout.folder("first").mkdir(parents=True)
    write_json(layout.spec("first"), spec())
    assert not has_image(layout, "first")
    write_json(layout.spec("first"), spec(image="a:1", image_id="sha256:01"))
    assert has_image(layout, "first")


@pytest.mark.parametrize("shared", [None, "/shared/clusterctl-jobs/train-0123/first"])
def test_home_in_a_container_is_the_folder_for_what_is_to_last(tmp_path: Path, shared: str | None) -> None:
    layout = Layout(tmp_path)
    layout.attempt("first", 1).mkdir(parents=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    containers = JobContainers(layout, spec(user=user, image_id="sha256:01", shared=shared), 0, tmp_path / "1.pyz")
    argv = containers.argv(["a.py"], {"EPOCHS": "3", "HOME": "/home/ada", "PATH": "/usr/bin"})
    words = read_json(Path(argv[argv.index("inside") + 1]))
    home = str(layout.work("first")) if shared is None else f"{shared}/work"
    assert words == {"variables": {"EPOCHS": "3", "HOME": home}, "path_first": []}


def contained(layout: Layout, **changes: Any) -> JobContainers:
    """The containers of a job whose first attempt has its folder."""
    layout.attempt("first", 1).mkdir(parents=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    return JobContainers(
        layout, spec(user=user, image_id="sha256:01", environment={}, **changes), 0, layout.root / "1.pyz"
    )


def mounts(argv: list[str]) -> list[str]:
    return [word for flag, word in itertools.pairwise(argv) if flag == "--mount"]


def test_pip_writes_the_job_s_environment_and_ranks_only_read_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    containers = contained(layout, requirements="requirements.txt", python="/opt/py/bin/python")
    folder = tmp_path / "var/lib/clusterctl/image-environments"
    making = containers.ready_argv(["python3", "-m", "pip"], {}, making=folder / "0123")
    assert mounts(making)[-1] == f"type=bind,source={folder}/0123,target={folder}/0123"
    assert not any("environments" in mount for mount in mounts(containers.ready_argv(["python3"], {})))
    write_python(layout, "first", f"{folder}/0123/bin/python", environment=f"{folder}/0123")
    argv = containers.argv(["a.py"], {})
    assert mounts(argv)[-1] == f"type=bind,source={folder}/0123,target={folder}/0123,readonly"
    assert argv[argv.index("--entrypoint") + 1] == "/opt/py/bin/python"
    words = read_json(Path(argv[argv.index("inside") + 1]))
    assert words["path_first"] == [f"{layout.folder('first')}/bin", f"{folder}/0123/bin"]


def test_without_requirements_no_environment_is_mounted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    containers = contained(layout)
    write_python(layout, "first", f"{tmp_path}/0123/bin/python", environment=f"{tmp_path}/0123")
    assert not any("0123" in mount for mount in mounts(containers.argv(["a.py"], {})))


def test_where_an_image_says_that_its_python_is_is_not_mounted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    containers = contained(layout, requirements="requirements.txt")
    write_python(layout, "first", "/etc/clusterctl/bin/python", environment=f"{tmp_path}/image-environments/0123")
    assert not any("/etc/clusterctl" in mount for mount in mounts(containers.argv(["a.py"], {})))


def test_an_environment_on_shared_storage_is_mounted_with_that_storage(tmp_path: Path) -> None:
    containers = contained(Layout(tmp_path), requirements="a.txt", shared="/fsx/clusterctl-jobs/train-0123/first")
    assert not any("environments" in mount for mount in mounts(containers.ready_argv(["python3"], {})))


@pytest.mark.parametrize(
    ("own", "first", "path"),
    [
        ({}, ["/job/bin", "/env/bin"], "/job/bin:/env/bin:/image/bin"),
        ({"PATH": "/mine"}, ["/job/bin", "/env/bin"], "/job/bin:/env/bin:/mine"),
        ({"PATH": "/mine"}, [], "/mine"),
        ({}, [], None),
    ],
)
def test_a_job_s_interpreter_comes_before_the_image_s_search_path(
    tmp_path: Path, own: dict[str, str], first: list[str], path: str | None
) -> None:
    write_json(tmp_path / "variables.json", {"variables": own, "path_first": first})
    assert variables_inside(tmp_path / "variables.json", {"PATH": "/image/bin"}).get("PATH") == path


def test_a_container_for_mpirun_s_daemon_stays_and_docker_s_knows_the_job_s_user(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nodd:x:1:1:::\n")
    argv = contained(layout, launcher="mpi").argv(["/bin/sh", "-c", "orted"], {}, is_daemon=True)
    assert argv[-6:-4] == ["attend", str(layout.attempt("first", 1) / "environment-0.json")]
    accounts = layout.attempt("first", 1) / "passwd"
    assert f"type=bind,source={accounts},target=/etc/passwd,readonly" in mounts(argv)
    names = [line.split(":")[0] for line in accounts.read_text().splitlines()]
    assert sorted(set(names)) == sorted({"root", "odd", pwd.getpwuid(os.getuid()).pw_name})
    assert len(names) == len(set(names))


@pytest.mark.parametrize("has_names", [False, True])
def test_a_task_for_which_nodes_names_are_served_has_a_resolv_conf_of_its_own(tmp_path: Path, has_names: bool) -> None:
    layout = Layout(tmp_path)
    layout.attempt("first", 1).mkdir(parents=True)
    if has_names:
        layout.resolv_conf("first").write_text("nameserver 127.83.0.1\n")
    user = pwd.getpwuid(os.getuid()).pw_name
    containers = JobContainers(layout, spec(user=user, image_id="sha256:01", shared=None), 0, tmp_path / "1.pyz")
    argv = containers.argv(["a.py"], {"HOME": "/home/ada", "EPOCHS": "3"})
    mount = f"type=bind,source={layout.resolv_conf('first')},target=/etc/resolv.conf,readonly"
    assert (mount in argv) == has_names


def test_a_container_has_the_folders_of_its_node_that_a_task_asks_for(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "opt")
    own = (Bind("/data", is_writable=True),)
    found = volume_binds([[str(tmp_path / "link"), "/in"], ["/dev/shm", "/dev/shm"]], own)
    assert found[0] == Bind("/in", is_writable=True, source=str(tmp_path / "opt"))
    assert found[1].path == "/dev/shm"
    again = [[str(tmp_path / "opt"), "/opt"]]
    assert volume_binds(again, (Bind("/opt", source=str(tmp_path / "link")),)) == (), "the job has it anyway"
    contained_argv = contained(Layout(tmp_path), volumes=[[str(tmp_path / "opt"), "/in"]]).argv(["a.py"], {})
    assert mounts(contained_argv)[-1] == f"type=bind,source={tmp_path}/opt,target=/in"


def test_a_folder_that_leads_to_the_nodes_keys_is_not_mounted(tmp_path: Path) -> None:
    """Root mounts, so a link that a job has left must not decide what."""
    (tmp_path / "planted").symlink_to("/proc")
    (tmp_path / "top").symlink_to("/")
    (tmp_path / "there").mkdir()
    for source, message in (
        (tmp_path / "planted", "planted leads to /proc, which no task mounts"),
        (tmp_path / "top", "top leads to /, which no task mounts"),
        (tmp_path / "gone", "gone is not on this node"),
        (tmp_path / "there", "/in is /shared already"),
    ):
        with pytest.raises(ValueError, match=message):
            volume_binds([[str(source), "/in"]], (Bind("/in", source="/shared"),))
