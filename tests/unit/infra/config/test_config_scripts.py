"""A person's scripts: read whole from beside cluster.yaml, and refused where no node could run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.errors import ConfigError

CLUSTER = "name: train\nregion: us-west-2\nnodes: 4\ngpus: h100:8\n"


def cluster(folder: Path, scripts: str, **files: bytes) -> Path:
    """A cluster.yaml with `scripts`, and files beside it; `_` in their names is a dot."""
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    path = folder / "cluster.yaml"
    path.write_text(f"{CLUSTER}scripts: {scripts}\n")
    return path


def test_the_short_form_runs_once_before_the_node_is_ready(tmp_path: Path) -> None:
    (script,) = load_cluster(cluster(tmp_path, "[setup.sh]", setup_sh=b"#!/bin/sh\nid\n")).scripts
    assert (script.name, script.when, script.at) == ("setup.sh", "once", "before-ready")
    assert script.content == "#!/bin/sh\nid\n"


def test_the_long_form_says_when_and_where(tmp_path: Path) -> None:
    path = cluster(tmp_path, "[{run: setup.sh, when: boot, at: after-ready}]", setup_sh="echo ü\n".encode())
    (script,) = load_cluster(path).scripts
    assert (script.when, script.at, script.content) == ("boot", "after-ready", "echo ü\n")


def test_a_script_in_another_folder_keeps_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes/setup.sh").write_text("id\n")
    assert load_cluster(cluster(tmp_path, "[nodes/setup.sh]")).scripts[0].name == "setup.sh"


REFUSED = {
    "no such file": ("[other.sh]", b"", "line 5   scripts[0]: 'other.sh': no such file: "),
    "a folder": ("[.]", b"", "not a file whose name has"),
    "empty": ("[setup.sh]", b" \n", "scripts[0]: 'setup.sh': an empty file"),
    "a program": ("[setup.sh]", b"\x7fELF\xff\xfe", "not UTF-8 text (byte 4)"),
    "NUL": ("[setup.sh]", b"echo \0\n", "holds a NUL character"),
    "Windows": ("[setup.sh]", b"#!/bin/sh\r\nid\r\n", "its lines end in CR LF"),
    "large": ("[setup.sh]", b"#" * 262_145, "larger than 256 KiB; let it fetch data from storage"),
}


@pytest.mark.parametrize(("scripts", "data", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_nodes_cannot_run_is_refused_with_its_line(
    tmp_path: Path, scripts: str, data: bytes, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_cluster(cluster(tmp_path, scripts, setup_sh=data))
    assert sentence in "\n".join(caught.value.problems)


def test_every_bad_file_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_cluster(cluster(tmp_path, "[a.sh, b.sh]"))
    assert len(caught.value.problems) == 2
