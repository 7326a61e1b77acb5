"""`plan`, `up`, `down`, `forget` of hosts before any question, and the verbs that do not apply to hosts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl import program
from clusterctl.home import Home
from clusterctl.hosts.meaning import hosts_inventory
from clusterctl.hosts.record import keep_inventory, read_record, write_record
from clusterctl.reap.known_here import inventories_here

from tests.unit.cli.hosts.test_meaning import FOLDER, config, record
from tests.unit.infra.components.example_clusters import HOSTS

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home of this test's own; nobody's cluster is chosen."""
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLUSTERCTL_CLUSTER", raising=False)
    return Home(path=tmp_path / "home")


@pytest.fixture
def known(home: Home) -> Home:
    """This computer knows the example's hosts as nodes."""
    write_record(record(), home)
    keep_inventory(hosts_inventory(config(), record(), folder=FOLDER), home)
    return home


@pytest.mark.usefixtures("home")
def test_plan_says_what_the_example_means_without_pulumi(screen: Screen) -> None:
    assert program.run(["plan", str(FOLDER)], screen.output) == 0
    assert f"{HOSTS}@hosts · 2 × host · 16 × H100 · cost unknown · nothing ends these hosts" in screen.out
    assert "no deadline and no cap ends them, or a job on them" in screen.out


@pytest.mark.usefixtures("home")
def test_plan_says_what_is_done_on_hosts_and_what_stays(screen: Screen, tmp_path: Path) -> None:
    stack = tmp_path / "lab"
    shutil.copytree(FOLDER, stack)
    (stack / "setup.sh").write_text("#!/bin/sh\n")
    with (stack / "cluster.yaml").open("a") as file:
        file.write(MORE)
    assert program.run(["plan", str(stack)], screen.output) == 0
    assert "  mounts   /data: nfs of 10.1.0.9:/export, read-only\n" in screen.out
    assert "  packages nfs-common; down leaves them installed\n" in screen.out
    assert "  scripts  setup.sh, as root; down undoes nothing that they did\n" in screen.out
    assert "  warning  env: commands over SSH go without LD_LIBRARY_PATH, PATH, which change what is run" in screen.out


MORE = """\
storage: [{mount: /data, nfs: {source: "10.1.0.9:/export", writable: false}}]
packages: [nfs-common]
scripts: [setup.sh]
env: {LD_LIBRARY_PATH: /opt/lib, PATH: /bin, NCCL_DEBUG: INFO}
"""


@pytest.mark.usefixtures("home")
def test_plan_as_json_has_no_deadline(screen: Screen) -> None:
    assert program.run(["plan", str(FOLDER), "--json"], screen.output) == 0
    printed = json.loads(screen.out)
    assert (printed["target"], printed["deadline"]) == ("hosts", None)
    assert [node["address"] for node in printed["nodes"]] == ["10.1.0.5", "10.1.0.6"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["plan", str(FOLDER), "--online"], "--online: does not apply"),
        (["plan", str(FOLDER), "--rehearse"], "--rehearse: does not apply"),
        (["up", str(FOLDER), "--nodes", "2", "--buy"], "--nodes, --buy: do not apply"),
    ],
)
def test_flags_of_what_is_made_are_refused(screen: Screen, words: list[str], flag: str) -> None:
    assert program.run(words, screen.output) == 2
    assert f"{flag} to target: hosts, where no machine is made or ended" in screen.err


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["extend", "1h"], "extend is not for two-infiniband-hosts@hosts, whose machines are not clusterctl's"),
        (["replace", "--node", "0"], "replace is not for"),
        (["cost"], "cost is not for"),
        (["down", "--all"], "--all: does not apply to target: hosts"),
        (["down"], "not agreed, since there is no terminal to ask at"),
        (["check", "--rounds", "2"], "--rounds 2 means nothing without --bandwidth"),
        (["up", str(FOLDER), "--reorder-ranks"], "--reorder-ranks: a rank is its slot's number here"),
        (["forget", HOSTS], "its hosts have the agent and its keys, which only down removes"),
    ],
)
def test_what_hosts_have_not_is_refused_by_name(screen: Screen, words: list[str], why: str) -> None:
    assert program.run(words, screen.output) == 2
    assert why in screen.err


def test_forget_with_yes_leaves_nothing_behind(known: Home, screen: Screen) -> None:
    assert program.run(["forget", HOSTS, "--yes"], screen.output) == 0
    assert read_record(HOSTS, known) is None
    assert known.cluster_names == ()


@pytest.mark.usefixtures("home")
def test_down_of_a_folder_whose_hosts_are_no_nodes_says_so(screen: Screen) -> None:
    assert program.run(["down", str(FOLDER)], screen.output) == 3
    assert "this computer knows of no node among its hosts" in screen.err


def test_down_finds_the_cluster_though_its_file_is_broken_by_now(home: Home, screen: Screen, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    shutil.copytree(FOLDER, folder)
    write_record(record(), home)
    keep_inventory(hosts_inventory(config(), record(), folder=folder), home)
    (folder / "cluster.yaml").write_text("target: [")
    assert program.run(["down", str(folder)], screen.output) == 2
    assert "not agreed" in screen.err


@pytest.mark.usefixtures("known")
def test_another_folder_with_the_same_name_takes_no_hosts_away(screen: Screen, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "copy")
    assert program.run(["up", str(tmp_path / "copy"), "--yes"], screen.output) == 2
    assert f"{HOSTS}@hosts is the cluster of {FOLDER}, whose hosts would leave it" in screen.err


def test_reap_knows_nothing_of_hosts(known: Home) -> None:
    assert inventories_here(known, rehearsal=False) == ()


@pytest.mark.usefixtures("known")
def test_nodes_shows_hosts_instead_of_instances(screen: Screen) -> None:
    assert program.run(["nodes"], screen.output) == 0
    assert f"{HOSTS} · hosts · 2 × host · 16 × H100" in screen.out
    assert "instance" not in screen.out
