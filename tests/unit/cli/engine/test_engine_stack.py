"""A stack folder, and whether plain `pulumi up` in it is a rehearsal."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.stack import read_stack, refuse_without_program
from clusterctl_infra.errors import UsageError

PLAIN = "name: train\nruntime: python\n"
STAND_IN = PLAIN + "plugins:\n  providers:\n    - {name: aws, path: ../plugin}\n"
OWN_ONLY = PLAIN + "plugins:\n  providers:\n    - {name: clusterctl, path: ../plugin}\n"


def folder(path: Path, project: str) -> Path:
    (path / "Pulumi.yaml").write_text(project)
    (path / "cluster.yaml").write_text("name: train\n")
    return path


@pytest.mark.parametrize(("project", "is_rehearsal"), [(PLAIN, False), (STAND_IN, True), (OWN_ONLY, False)])
def test_a_stack_that_names_the_stand_in_is_a_rehearsal(tmp_path: Path, project: str, is_rehearsal: bool) -> None:
    stack = read_stack(folder(tmp_path, project), name="dev")
    assert stack.is_rehearsal_project is is_rehearsal
    assert stack.urn == "urn:pulumi:dev::train::pulumi:pulumi:Stack::train-dev"
    assert stack.config_file == tmp_path / "Pulumi.dev.yaml"


def test_plugins_are_where_the_engine_will_say_that_it_looked(tmp_path: Path) -> None:
    assert read_stack(folder(tmp_path, OWN_ONLY)).plugin_folders == (str(tmp_path.parent / "plugin"),)
    assert read_stack(folder(tmp_path, PLAIN)).plugin_folders == ()


def test_a_folder_without_its_files_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no Pulumi\.yaml"):
        read_stack(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text(PLAIN)
    with pytest.raises(UsageError, match=r"has no cluster\.yaml"):
        read_stack(tmp_path)


@pytest.mark.parametrize("project", ["- a list\n", "runtime: python\n", "name: [1]\n", "a: b: c\n"])
def test_a_project_file_that_is_none_is_refused(tmp_path: Path, project: str) -> None:
    with pytest.raises(UsageError, match=r"Pulumi\.yaml"):
        read_stack(folder(tmp_path, project))


def test_what_is_wrong_in_a_project_file_is_told_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_stack(folder(tmp_path, "name: train\nplugins: [\n"))
    assert "line 3: not YAML: while parsing a flow node, expected the node content" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "", "dev/x", "dev\n"])
def test_a_stack_name_that_the_engine_refuses_is_refused_before_it_is_asked(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--stack-name"):
        read_stack(folder(tmp_path, PLAIN), name=name)


@pytest.mark.parametrize(
    ("stacks", "typed", "hint"),
    [
        ((), ".", "clusterctl up --help"),
        (("stacks/train",), ".", "clusterctl up stacks/train --rehearse"),
        (("stacks/a", "stacks/train"), ".", "clusterctl plan stacks/a --rehearse"),
        (
            ("stacks/a", "stacks/train"),
            "stacks",
            "clusterctl plan stacks/a --rehearse",
        ),
        (("stacks/train",), "stacks/trian", "clusterctl up stacks/train --rehearse"),
        (("stacks/a", "stacks/train"), "stacks/trian", "clusterctl up stacks/train --rehearse"),
        (("stacks/a", "stacks/train"), "stacks/quick", "clusterctl plan stacks/a --rehearse"),
        (("stacks/train",), "stacks/train/Pulumi.yaml", "clusterctl up stacks/train --rehearse"),
        (("stacks/train",), "stcks/train", "ls ."),
    ],
    ids=["none", "one", "several", "their folder", "a slip", "a slip, several", "none like it", "a file", "before it"],
)
def test_where_there_is_no_stack_those_near_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacks: tuple[str, ...], typed: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in stacks:
        (tmp_path / name).mkdir(parents=True)
        folder(tmp_path / name, PLAIN)
    with pytest.raises(UsageError) as caught:
        read_stack(Path(typed), rehearse=True)
    assert caught.value.hint == hint
    assert ("stacks near it: stacks/a, stacks/train" in caught.value.message) == (len(stacks) == 2)


def test_a_stack_that_lacks_a_file_is_no_reason_to_name_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "train"):
        Path(name).mkdir()
        folder(Path(name), PLAIN)
    Path("mine/cluster.yaml").unlink()
    with pytest.raises(UsageError, match=r"it has no cluster\.yaml$") as caught:
        read_stack(Path("mine"))
    assert caught.value.hint == "ls -A mine"


def test_a_stack_without_its_program_is_refused_with_what_brings_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "train"):
        Path(name).mkdir()
        folder(Path(name), PLAIN)
    with pytest.raises(UsageError, match=r"^mine has no __main__\.py, the program that Pulumi runs") as caught:
        refuse_without_program(read_stack(Path("mine")))
    assert caught.value.hint == "ls mine"
    Path("train/__main__.py").touch()
    with pytest.raises(UsageError) as caught:
        refuse_without_program(read_stack(Path("mine")))
    assert caught.value.hint == "cp train/__main__.py mine/"
    refuse_without_program(read_stack(Path("train")))
    folder(Path("mine"), PLAIN + "main: src\n")
    refuse_without_program(read_stack(Path("mine")))
