"""A job's own interpreter, and its files in folders of the login user, which are read as that user."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusterctl.on_node.job import own_python
from clusterctl.on_node.job.job_environment import PATH, job_environment
from clusterctl.on_node.job.layout import Layout

from tests.unit.cli.jobs.job_specs import spec

SPEC = {"job": "train-1", "requirements": "requirements.txt"}
PYTHON = ["/usr/bin/python3", "3.10.12", "Linux"]
DENIED = "head: cannot open it: Permission denied"


class FakeRun:
    """Runs as the login user, who can read `readable` only: of any other file head says just that it is denied."""

    def __init__(self, readable: Sequence[Path]) -> None:
        self._readable = readable

    def __call__(self, argv: Sequence[str], *, keeps_output: bool = False, **_: object) -> tuple[int, str]:
        if argv[0] != "head":
            return 0, ""
        path = Path(argv[-1])
        return (0, path.read_text()) if path in self._readable else (1, DENIED)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path)
    found.code("train-1").mkdir(parents=True)
    own_python.environments(found, SPEC).mkdir(parents=True)
    (tmp_path / "root-s").write_text("the node's key")
    return found


def test_requirements_that_are_a_link_to_what_root_may_read_are_not_read(layout: Layout, tmp_path: Path) -> None:
    (layout.code("train-1") / "requirements.txt").symlink_to(tmp_path / "root-s")
    with pytest.raises(ValueError, match="Permission denied"):
        own_python.lock(layout, SPEC, PYTHON, FakeRun([]))


def test_a_lock_that_another_job_made_a_link_is_not_sent_to_the_nodes(layout: Layout, tmp_path: Path) -> None:
    source = layout.code("train-1") / "requirements.txt"
    source.write_text("numpy\n")
    digest = own_python.digest("numpy\n", *PYTHON[1:])
    place = own_python.environments(layout, SPEC) / f"lock-{digest}.txt"
    place.symlink_to(tmp_path / "root-s")
    with pytest.raises(ValueError, match="Permission denied"):
        own_python.lock(layout, SPEC, PYTHON, FakeRun([source]))
    place.unlink()
    place.write_text("numpy==2.0\n")
    assert own_python.lock(layout, SPEC, PYTHON, FakeRun([source, place])) == "numpy==2.0\n"


@pytest.mark.parametrize("given", [{}, {"PATH": "/opt/mine:/usr/bin"}])
def test_the_interpreter_of_a_job_comes_first_also_before_a_path_of_the_persons(
    layout: Layout, given: dict[str, str]
) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    words = spec(user=user, job="train-1", environment=given)
    path = given.get("PATH", PATH)
    assert job_environment(layout, words, 0)["PATH"] == path
    own_python.write_python(layout, "train-1", "/envs/1/bin/python")
    found = job_environment(layout, words, 0)["PATH"]
    assert found == f"{layout.folder('train-1')}/bin:/envs/1/bin:{path}"


@pytest.mark.parametrize("text", ["", "no", "{", "{}", '{"install": 5}', "[" * 5000 + "{" * 5000, '{"install": {}}'])
def test_a_report_that_is_none_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="pip gave no report"):
        own_python.report_of(text)


@pytest.mark.parametrize(
    "row", [5, {}, {"metadata": 5}, {"metadata": {"name": "x", "version": "1"}, "download_info": 5}]
)
def test_a_row_of_a_report_that_is_none_is_said(row: object) -> None:
    with pytest.raises(ValueError, match="pip's report has an odd row"):
        own_python.locked("", own_python.report_of(json.dumps({"install": [row]})))


class RecordedRun:
    """Notes what pip and Python are asked; pip finds nothing to install."""

    def __init__(self, *, has_pip: bool = True) -> None:
        self.asked: list[tuple[bool, list[str]]] = []
        self._has_pip = has_pip

    def __call__(self, argv: Sequence[str], *, is_contained: bool = False, **_: object) -> tuple[int, str]:
        self.asked.append((is_contained, list(argv)))
        if "--version" in argv:
            return (0, "pip 25.0") if self._has_pip else (1, "No module named pip")
        if "--report" in argv:
            return 0, '{"install": []}'
        return 0, "einops\n" if argv[0] == "head" else ""


def test_in_an_image_what_it_has_is_kept_and_only_python_and_pip_run_in_containers(layout: Layout) -> None:
    run = RecordedRun()
    own_python.lock(layout, {**SPEC, "image_id": "sha256:01"}, PYTHON, run)
    inside = [argv for is_contained, argv in run.asked if is_contained]
    assert inside[0] == ["/usr/bin/python3", "-I", "-m", "pip", "--version"]
    assert inside[1][:-1] == ["/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip"]
    assert "--ignore-installed" not in inside[2]
    assert {argv[0] for is_contained, argv in run.asked if not is_contained} == {"head", "sh", "rm"}
    on_nodes = RecordedRun()
    own_python.lock(layout, SPEC, PYTHON, on_nodes)
    assert any("--ignore-installed" in argv for _, argv in on_nodes.asked)
    assert not any("--system-site-packages" in argv for _, argv in on_nodes.asked)


def test_what_was_resolved_is_the_lock_of_the_next_job_with_these_requirements(layout: Layout) -> None:
    spec = {**SPEC, "image_id": "sha256:01"}
    run = RecordedRun()
    made = own_python.lock(layout, spec, PYTHON, run)
    (place,) = {argv[-1] for _, argv in run.asked if argv[0] == "sh" and Path(argv[-1]).name.startswith("lock-")}
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).write_text(made)
    again = RecordedRun()
    own_python.lock(layout, spec, PYTHON, again)
    assert {argv[0] for _, argv in again.asked} == {"head"}, "nothing is resolved"


def test_what_the_image_s_python_made_to_resolve_with_goes_again(layout: Layout) -> None:
    """It lies in root's folder, where the job's user can remove nothing."""

    class MakingRun(RecordedRun):
        def __call__(self, argv: Sequence[str], *, is_contained: bool = False, **more: object) -> tuple[int, str]:
            if "venv" in argv:
                Path(argv[-1]).mkdir(parents=True)
                made.append(Path(argv[-1]))
            return super().__call__(argv, is_contained=is_contained, **more)

    made: list[Path] = []
    own_python.lock(layout, {**SPEC, "image_id": "sha256:01"}, PYTHON, MakingRun())
    assert len(made) == 1
    assert not made[0].exists()


def test_an_image_without_pip_has_it_made_by_venv() -> None:
    spec = {**SPEC, "image_id": "sha256:01"}
    made = own_python.venv_argv(spec, "/opt/python3", RecordedRun(has_pip=False))
    assert made == ["/opt/python3", "-m", "venv", "--system-site-packages"]


def test_each_image_and_the_nodes_have_environments_of_their_own(layout: Layout) -> None:
    images: tuple[dict[str, str], ...] = ({}, {"image_id": "sha256:01"}, {"image_id": "sha256:02"})
    places = [
        own_python.environment_of(layout, {**SPEC, **image}, "einops==1\n", PYTHON, RecordedRun()) for image in images
    ]
    assert len(set(places)) == 3
