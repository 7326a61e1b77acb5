"""The folder of a backend of files is the one that the engine itself means, however its URL was written."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from clusterctl.engine.backend import copy_folders, folder_of, lock_folder, state_path, whole_url
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.stack import Stack


@pytest.mark.parametrize(
    ("url", "whole", "folder"),
    [
        ("file:///srv/state", "file:///srv/state", "/srv/state/.pulumi"),
        ("file://~", "file:///home/ada", "/home/ada/.pulumi"),
        ("file://~/state", "file:///home/ada/state", "/home/ada/state/.pulumi"),
        ("file://~ada", "file:///stacks/train/~ada", "/stacks/train/~ada/.pulumi"),
        ("file://.", "file:///stacks/train", "/stacks/train/.pulumi"),
        ("file://./../state", "file:///stacks/state", "/stacks/state/.pulumi"),
        ("file:///srv/my%20state", "file:///srv/my%20state", "/srv/my state/.pulumi"),
        ("file:///srv/state?no_tmp_dir=true", "file:///srv/state?no_tmp_dir=true", "/srv/state/.pulumi"),
        ("s3://bucket/path", "s3://bucket/path", None),
        ("https://api.pulumi.com", "https://api.pulumi.com", None),
    ],
)
def test_a_url_means_what_it_means_to_the_engine(url: str, whole: str, folder: str | None) -> None:
    assert whole_url(url, folder=Path("/stacks/train"), user_home=Path("/home/ada")) == whole
    assert folder_of(whole) == (None if folder is None else Path(folder))


@pytest.mark.parametrize(("url", "shown"), [("file://~", "{home}"), ("file://state", "{stack}/state")])
def test_locks_and_states_are_looked_for_where_the_engine_has_them(tmp_path: Path, url: str, shown: str) -> None:
    environment = EngineEnvironment(
        env={"PULUMI_BACKEND_URL": url},
        rehearsal=False,
        executable="pulumi",
        config_file=tmp_path / "Pulumi.dev.yaml",
        run_token="1",
    )
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    home = pwd.getpwuid(os.getuid()).pw_dir
    found = PulumiEngine(stack=stack, environment=environment).backend_url()
    assert found == f"file://{shown.format(home=home, stack=tmp_path)}"


@pytest.mark.parametrize(
    ("there", "stack", "lock", "copies"),
    [
        ((), "stacks/train/dev.json", "locks/organization/train/dev", ("history/train/dev", "backups/train/dev")),
        (
            ("meta.yaml", "stacks/dev.json"),
            "stacks/train/dev.json",
            "locks/organization/train/dev",
            ("history/train/dev", "backups/train/dev"),
        ),
        (("stacks/dev.json",), "stacks/dev.json", "locks/dev", ("history/dev", "backups/dev")),
        (("locks/dev/a.json",), "stacks/dev.json", "locks/dev", ("history/dev", "backups/dev")),
    ],
    ids=["new", "with projects", "without, as an older engine made it", "the same, while its first run goes on"],
)
def test_both_layouts_of_a_backend_are_known(
    tmp_path: Path, there: tuple[str, ...], stack: str, lock: str, copies: tuple[str, str]
) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    dev = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=False)
    assert state_path(tmp_path, dev) == tmp_path / stack
    assert lock_folder(tmp_path, dev) == tmp_path / lock
    assert copy_folders(tmp_path, dev) == (tmp_path / copies[0], tmp_path / copies[1])
