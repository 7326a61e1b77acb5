"""`clusterctl ssh train-2`: the first word names a node, unless it stands behind `--`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.engine.jobs_here import note_job
from clusterctl.home import Home
from clusterctl.ssh.arguments import request_of
from clusterctl.ssh.request import SshRequest, remote_command, with_node_named_first
from clusterctl.system.caller import Caller
from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.outputs import inventory_to_json

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory

KNOWN = ("hu-one@rehearsal", "lab@hosts", "train")


@pytest.fixture
def home(tmp_path: Path, make_inventory: MakeInventory) -> Home:
    home = Home(path=tmp_path)
    home.inventory_dir.mkdir(parents=True)
    for cluster in KNOWN:
        inventory = make_inventory(name=cluster.partition("@")[0], cluster=cluster)
        home.inventory_file(cluster).write_text(json.dumps(inventory_to_json(inventory)))
    return home


def asked(home: Home, *argv: str, variable: str = "") -> SshRequest:
    environ = {"CLUSTERCTL_HOME": str(home.path)} | ({"CLUSTERCTL_CLUSTER": variable} if variable else {})
    return with_node_named_first(request_of(argv), Caller(environ=environ, folder=Path(), stdin=None))


@pytest.mark.parametrize(
    ("argv", "cluster", "node", "line"),
    [
        (("hu-one-2",), "hu-one@rehearsal", "hu-one-2", None),
        (("train-0", "nvidia-smi", "-L"), "train", "train-0", "nvidia-smi -L"),
        (("train-0", "df -h | tail -1"), "train", "train-0", "df -h | tail -1"),
        (("train-0", "--", "-x"), "train", "train-0", "-x"),
        (("--cluster", "train", "train-1"), "train", "train-1", None),
        (("--cluster", "train", "hu-one-1"), "train", None, "hu-one-1"),
        (("--cluster", "hu-one", "hu-one-1"), "hu-one@rehearsal", "hu-one-1", None),
        (("lab-1", "id"), "lab@hosts", "lab-1", "id"),
        (("--cluster", "lab", "lab-1"), "lab@hosts", "lab-1", None),
        (("train-12", "id"), "train", "train-12", "id"),
        (("--", "train-2"), None, None, "train-2"),
        (("--node", "1", "train-2"), None, "1", "train-2"),
        (("g++-12", "-v"), None, None, "g++-12 -v"),
        (("uptime",), None, None, "uptime"),
        ((), None, None, None),
    ],
)
def test_the_first_word_is_a_node_where_a_cluster_has_nodes_called_so(
    home: Home, argv: tuple[str, ...], cluster: str | None, node: str | None, line: str | None
) -> None:
    request = asked(home, *argv)
    assert (request.cluster, request.node, request.line) == (cluster, node, line)


def test_a_node_of_another_cluster_than_the_variable_names_is_found_too(home: Home) -> None:
    assert asked(home, "hu-one-2", variable="train").cluster == "hu-one@rehearsal"
    assert asked(home, "train-2", variable="train").cluster == "train"


def test_a_flag_behind_the_node_is_not_taken_for_a_command(home: Home) -> None:
    with pytest.raises(UsageError, match="--sudo after train-2 is a part of the command"):
        asked(home, "train-2", "--sudo", "id")


def test_a_node_that_is_not_there_is_answered_with_those_that_are(home: Home) -> None:
    caller = Caller(environ={"CLUSTERCTL_HOME": str(home.path)}, folder=Path(), stdin=None)
    request = with_node_named_first(request_of(["hu-one-9", "id"]), caller)
    with pytest.raises(NothingMatched, match="no node 9: hu-one has nodes 0-3") as refused:
        remote_command(request, caller)
    assert refused.value.hint == "clusterctl nodes --cluster hu-one@rehearsal"


@pytest.mark.parametrize(
    ("argv", "cluster", "node", "line"),
    [
        (("first", "--node", "1", "--command", "nvidia-smi"), "hu-one@rehearsal", "1", "nvidia-smi"),
        (("first",), "hu-one@rehearsal", None, None),
        (("--cluster", "train", "first", "--node", "0"), "train", "0", None),
        (("first", "-u"), None, None, "first -u"),
        (("first", "words"), None, None, "first words"),
        (("--", "first"), None, None, "first"),
        (("gone", "--node", "0"), None, None, "gone --node 0"),
        (("other", "--node", "0"), None, None, "other --node 0"),
    ],
)
def test_the_first_word_is_a_job_that_this_computer_started_where_flags_or_nothing_follow(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    cluster: str | None,
    node: str | None,
    line: str | None,
) -> None:
    note_job("first", "hu-one@rehearsal", home)
    note_job("gone", "ended", home)
    monkeypatch.setenv("CLUSTERCTL_HOME", str(home.path))
    request = request_of(argv)
    assert (request.cluster, request.node, request.line) == (cluster, node, line)
