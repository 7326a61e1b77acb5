"""A state in a backend of files is read without the engine, which is asked wherever the files are not plainly so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.stack import Stack
from clusterctl.engine.state_in_files import StateInFiles, state_in_files
from clusterctl_infra.errors import EngineError

STACK = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=True)
LATEST = {"manifest": {}, "resources": [{"urn": "a"}]}
ASK_THE_ENGINE = None
NO_STACK = StateInFiles(deployment=None)


def checkpoint(latest: object, *, version: int = 3) -> str:
    return json.dumps({"version": version, "checkpoint": {"stack": "organization/train/dev", "latest": latest}})


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": checkpoint(LATEST)}, StateInFiles(deployment=LATEST)),
        ({"stacks/dev.json": checkpoint(LATEST)}, StateInFiles(deployment=LATEST)),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": checkpoint(None)}, StateInFiles(deployment={})),
        ({"meta.yaml": "version: 1", "stacks/train/other.json": checkpoint(LATEST)}, NO_STACK),
        ({}, NO_STACK),
        ({"stacks/train/other.json": checkpoint(LATEST)}, ASK_THE_ENGINE),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json.gz": "compressed"}, ASK_THE_ENGINE),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": ""}, ASK_THE_ENGINE),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": "[]"}, ASK_THE_ENGINE),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": checkpoint([])}, ASK_THE_ENGINE),
        ({"meta.yaml": "version: 1", "stacks/train/dev.json": checkpoint(LATEST, version=4)}, ASK_THE_ENGINE),
    ],
    ids=[
        "a stack",
        "a stack of before projects",
        "a stack that was never run",
        "another stack",
        "a backend that nobody has used",
        "files of no layout that is known",
        "compressed",
        "torn",
        "no object",
        "no state",
        "of a later version",
    ],
)
def test_a_state_is_read_where_it_is_plainly_there(
    files: dict[str, str], found: StateInFiles | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        file = tmp_path / ".pulumi" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert state_in_files(f"file://{tmp_path}", STACK, {}) == found


@pytest.mark.parametrize("url", ["s3://bucket", "https://api.pulumi.com", "file:///nowhere/at/all"])
def test_of_another_backend_and_of_a_folder_that_is_not_there_the_engine_tells(url: str) -> None:
    assert state_in_files(url, STACK, {}) is ASK_THE_ENGINE


def test_a_backend_with_settings_of_its_own_is_the_engines_to_read(tmp_path: Path) -> None:
    assert state_in_files(f"file://{tmp_path}", STACK, {"PULUMI_DIY_BACKEND_GZIP": "true"}) is ASK_THE_ENGINE


def test_what_may_not_be_read_is_the_engines_to_refuse(tmp_path: Path) -> None:
    (tmp_path / ".pulumi" / "stacks" / "train" / "dev.json").mkdir(parents=True)
    assert state_in_files(f"file://{tmp_path}", STACK, {}) is ASK_THE_ENGINE


def engine_without_a_program(folder: Path) -> PulumiEngine:
    """An engine that cannot be started, whose state is kept in files."""
    environment = EngineEnvironment(
        env={"PULUMI_BACKEND_URL": f"file://{folder}"},
        rehearsal=False,
        executable=str(folder / "no-pulumi"),
        config_file=folder / "Pulumi.dev.yaml",
        run_token="1",
    )
    return PulumiEngine(stack=STACK, environment=environment)


def test_a_state_in_files_is_known_without_a_start_of_the_engine(tmp_path: Path) -> None:
    engine = engine_without_a_program(tmp_path)
    assert engine.export() is None, "no stack yet"
    file = tmp_path / ".pulumi" / "stacks" / "train" / "dev.json"
    file.parent.mkdir(parents=True)
    (tmp_path / ".pulumi" / "meta.yaml").write_text("version: 1")
    file.write_text(checkpoint(LATEST))
    state = engine.export()
    assert state is not None
    assert [resource.urn for resource in state.resources] == ["a"]
    file.write_text(checkpoint({"resources": "none"}))
    with pytest.raises(EngineError, match=r"not a state: .*resources"):
        engine.export()
