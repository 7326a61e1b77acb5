"""cluster.yaml as a file: whatever lies there, it is a cluster or a sentence about what it is instead."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import yaml
from clusterctl_infra.config.load import SIZE_LIMIT_BYTES, load_cluster, login_name
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.config.config_texts import SMALL, parsed, problems


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n"])
def test_an_empty_file_is_said_to_be_empty(text: str) -> None:
    assert problems(text) == ["  empty; a cluster needs at least name, region, nodes and gpus"]


@pytest.mark.parametrize("text", ["train", "- train\n", "42\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    assert problems(text) == ["  not a mapping: write key: value lines, such as name: train"]


def test_a_syntax_error_names_its_line() -> None:
    (line,) = problems("name: train\nnodes: [1, 2\nregion: x\n")
    assert line.startswith("  line 3")
    assert "not YAML" in line


def test_words_that_yaml_would_change_stay_what_was_written() -> None:
    config = parsed(SMALL.replace("train", "no") + "env: {A: yes, B: 010, C: 12:30:00, D: 1.10, F: ''}\n")
    assert config.name == "no"
    assert config.env == {"A": "yes", "B": "010", "C": "12:30:00", "D": "1.10", "F": ""}


def test_the_owner_is_whoever_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(SMALL)
    assert load_cluster(path).owner
    path.write_text(SMALL + "owner: ada\n")
    assert load_cluster(path).owner == "ada"


@pytest.mark.parametrize(("login", "owner"), [("ada", "ada"), ("CORP\\ada", "CORP-ada"), ("Jörg K.", "Jörg K.")])
def test_a_login_name_becomes_an_owner_that_every_service_takes_as_a_tag(
    monkeypatch: pytest.MonkeyPatch, login: str, owner: str
) -> None:
    monkeypatch.setenv("LOGNAME", login)
    assert login_name() == owner


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_cluster(path).name == "train"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"name: train\nregion: \xff\n", "not UTF-8 text (line 2, byte 20: 0xff)"),
        (SMALL.encode("utf-16"), "not UTF-8 text (line 1, byte 0"),
        (b"#" * (SIZE_LIMIT_BYTES + 1), "larger than 256 KiB"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_cluster(path)
    assert sentence in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_cluster(tmp_path / "cluster.yaml")


def test_a_folder_is_answered_with_the_file_in_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a folder, not a file \(did you mean .*/cluster.yaml\?\)"):
        load_cluster(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cluster.yaml")
    with pytest.raises(ConfigError, match="not a file"):
        load_cluster(tmp_path / "cluster.yaml")


keys = st.sampled_from([*ClusterConfig.model_fields, "x", "mount", "size"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["h100:8", "1h", "10.0.0.0/20"])
)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6), max_leaves=20
)


@given(st.text())
def test_any_text_is_a_cluster_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parsed(text)


@given(st.dictionaries(keys, trees, max_size=8))
def test_any_yaml_is_a_cluster_or_a_config_error(tree: object) -> None:
    with contextlib.suppress(ConfigError):
        parsed(yaml.safe_dump(tree))


@given(st.dictionaries(st.sampled_from(["nodes", "gpus", "zone", "runtime", "budget_usd", "mode", "x"]), st.text()))
def test_any_override_is_taken_or_a_config_error(overrides: dict[str, str]) -> None:
    with contextlib.suppress(ConfigError):
        parsed(SMALL, overrides)
