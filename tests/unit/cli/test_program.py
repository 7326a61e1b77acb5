"""`clusterctl` as it is typed: exit codes, wrong words, completion, and verbs that ask nobody."""

from __future__ import annotations

import errno
import importlib
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import click
import pytest
from clusterctl import program
from clusterctl.commands.rehearse import FAULTS as COMPLETED_FAULTS
from clusterctl.verbs import VERBS, module_of
from clusterctl_infra.errors import ConfigError, NothingMatched
from clusterctl_infra.outputs import inventory_to_json
from clusterctl_infra.version import VERSION
from clusterctl_rehearsal.region.faults import FAULTS
from clusterctl_rehearsal.verbs import main as rehearsal

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory, Screen


@click.command("raiser")
@click.argument("kind")
def raiser(kind: str) -> int:
    raise {
        "expected": NothingMatched("no node 7", hint="clusterctl nodes"),
        "config": ConfigError("2 problems", problems=["  line 1  a", "  line 2  b"]),
        "bug": RuntimeError("boom"),
        "pipe": BrokenPipeError(errno.EPIPE, "Broken pipe"),
        "interrupt": KeyboardInterrupt(),
    }[kind]


@pytest.fixture
def with_raiser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the verb `raiser KIND`, which raises an error of that kind."""
    monkeypatch.setitem(VERBS, "raiser", "Raises an error of the kind asked for.")
    monkeypatch.setitem(sys.modules, module_of("raiser"), cast(ModuleType, SimpleNamespace(command=raiser)))


@pytest.mark.usefixtures("with_raiser")
@pytest.mark.parametrize(
    ("kind", "code", "stderr"),
    [
        ("expected", 3, "clusterctl: no node 7\n  next: clusterctl nodes\n"),
        ("config", 2, "clusterctl: 2 problems\n  line 1  a\n  line 2  b\n"),
        ("pipe", 0, ""),
    ],
)
def test_a_failure_becomes_a_sentence_and_an_exit_code(screen: Screen, kind: str, code: int, stderr: str) -> None:
    assert program.run(["raiser", kind], screen.output) == code
    assert screen.err == stderr
    assert screen.out == ""


@pytest.mark.usefixtures("with_raiser")
def test_ctrl_c_is_130(screen: Screen) -> None:
    assert program.run(["raiser", "interrupt"], screen.output) == 130
    assert screen.err == "clusterctl: interrupted\n"


@pytest.mark.usefixtures("with_raiser")
def test_a_bug_is_one_line_and_a_log(screen: Screen, own_home: Path) -> None:
    assert program.run(["raiser", "bug"], screen.output) == 70
    assert screen.err.count("\n") == 1
    assert "unexpected RuntimeError: boom" in screen.err
    (log,) = (own_home / "log").iterdir()
    assert "Traceback" in log.read_text()
    assert str(log) in screen.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["noeds"], "no verb 'noeds' (did you mean nodes?)"),
        (["zzz"], "no verb 'zzz'\n"),
        (["nodes", "--jsno"], "no such option '--jsno'"),
        (["nodes", "extra"], "unexpected extra argument"),
        (["--nope"], "no such option '--nope'"),
        (["logs", "--grep"], "option '--grep' requires an argument\n  next: clusterctl logs --help"),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'\n"),
        (["sweep", "--probe", "dsk"], "no probe 'dsk' (did you mean disk?)"),
        (["ssh", "--fanout", "4097", "ls"], "'4097': write how many, a whole number from 1 to 4096\n"),
        (["up", "--nodes", "0"], "'0': write how many, a whole number from 1\n"),
    ],
)
def test_wrong_words_are_usage_with_a_hint_that_is_a_command(screen: Screen, argv: list[str], message: str) -> None:
    assert program.run(argv, screen.output) == 2
    assert message in screen.err
    assert "next: clusterctl" in screen.err


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("zsh", "compdef _clusterctl_completion clusterctl"),
        ("fish", "complete --no-files --command clusterctl"),
    ],
)
def test_completion_is_a_script_that_ties_our_words_to_the_shell(screen: Screen, shell: str, words: str) -> None:
    assert program.run(["completion", shell], screen.output) == 0
    assert f"_CLUSTERCTL_COMPLETE={shell}_complete" in screen.out
    assert words in screen.out


@pytest.mark.parametrize("flags", [["--cluster", ""], ["--cluster="], [""]])
def test_an_empty_name_does_not_end_the_only_cluster(
    screen: Screen, own_home: Path, make_inventory: MakeInventory, flags: list[str]
) -> None:
    (own_home / "inventory").mkdir(parents=True)
    (own_home / "inventory" / "train.json").write_text(json.dumps(inventory_to_json(make_inventory(size=2))))
    assert program.run(["down", "--yes", *flags], screen.output) == 2
    assert "empty, as from a shell variable that is not set" in screen.err
    assert screen.err.endswith("next: clusterctl down --help\n")


@pytest.mark.parametrize("argv", [["plan", ""], ["up", ""], ["nodes", "--stack", ""], ["status", "--cluster", ""]])
def test_an_empty_name_means_no_folder_and_no_cluster(screen: Screen, argv: list[str]) -> None:
    assert program.run(argv, screen.output) == 2
    assert "empty, as from a shell variable that is not set" in screen.err


def test_a_zsh_that_has_no_compdef_yet_gets_it_before_it_is_called(screen: Screen) -> None:
    assert program.run(["completion", "zsh"], screen.output) == 0
    assert screen.out.startswith("#compdef clusterctl\n")
    assert 0 < screen.out.index("compinit") < screen.out.index("compdef _clusterctl_completion clusterctl")


def test_the_verbs_of_a_rehearsal_are_completed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        rehearsal(["--help"])
    there = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    command = importlib.import_module(module_of("rehearse")).command
    (words,) = command.params

    def completed(typed: str, *before: str) -> list[str]:
        context = click.Context(command)
        context.params["words"] = before
        return [item.value for item in words.shell_complete(context, typed)]

    assert sorted(completed("")) == sorted(there)
    assert completed("f") == ["fault"]
    assert completed("k", "fault") == ["kill"]
    assert sorted(completed("", "fault")) == sorted(FAULTS)
    assert tuple(FAULTS) == COMPLETED_FAULTS
    assert completed("", "list") == []


def test_the_node_that_a_fault_is_done_to_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_inventory: MakeInventory
) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    (tmp_path / "inventory").mkdir()
    for cluster, is_rehearsal in (("train@rehearsal", True), ("paid", False)):
        inventory = make_inventory(cluster=cluster, rehearsal=is_rehearsal, size=2)
        (tmp_path / "inventory" / f"{cluster}.json").write_text(json.dumps(inventory_to_json(inventory)))
    assert completion_of("rehearse", "words", "", words=("fault", "kill")) == ["train-0", "train-1"]
    assert completion_of("rehearse", "words", "", words=("fault", "partition", "train-0")) == ["train-1"]
    assert completion_of("rehearse", "words", "", words=("fault", "capacity")) == []


def test_probes_and_logs_are_completed() -> None:
    assert completion_of("sweep", "probes", "gpu,d") == ["gpu,disk"]
    assert completion_of("sweep", "probes", "cl") == ["clock"]
    assert completion_of("logs", "sources", "k") == ["kernel"]
    assert "bootstrap" not in completion_of("logs", "sources", "", sources=("bootstrap",))


@pytest.mark.parametrize("verb", ["up", "down", "forget"])
def test_whatever_names_a_cluster_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_inventory: MakeInventory, verb: str
) -> None:
    known(tmp_path, monkeypatch, make_inventory)
    assert completion_of(verb, "cluster", "tr") == ["train"]


@pytest.mark.parametrize("verb", ["replace", "forward", "ssh", "run", "logs"])
def test_whatever_names_nodes_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_inventory: MakeInventory, verb: str
) -> None:
    known(tmp_path, monkeypatch, make_inventory)
    assert completion_of(verb, "node", "train-") == ["train-0", "train-1"]
    assert completion_of(verb, "node", "1") == ["1"]


def test_regions_and_machines_of_a_new_stack_are_completed() -> None:
    assert completion_of("init", "region", "us-west-") == ["us-west-1", "us-west-2"]
    assert completion_of("init", "instance_type", "p5.48") == ["p5.48xlarge"]


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        ("status train", "train is a cluster: write it after --cluster", "clusterctl status --cluster train"),
        (
            "sweep train-1",
            "train-1 is a node of train: write it after --node",
            "clusterctl sweep --cluster train --node train-1",
        ),
        (
            "down train",
            "there is no folder train, but train is a cluster: write it after --cluster",
            "clusterctl down --cluster train",
        ),
        ("status train-1", "got unexpected extra argument (train-1)", "clusterctl status --help"),
        ("status other", "got unexpected extra argument (other)", "clusterctl status --help"),
    ],
)
def test_a_cluster_that_is_named_without_its_flag_is_understood(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_inventory: MakeInventory,
    screen: Screen,
    typed: str,
    message: str,
    hint: str,
) -> None:
    known(tmp_path, monkeypatch, make_inventory)
    monkeypatch.chdir(tmp_path)
    assert program.run(typed.split(), screen.output) == 2
    assert screen.err == f"clusterctl: {message}\n  next: {hint}\n"


def test_a_new_folder_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_inventory: MakeInventory, screen: Screen
) -> None:
    known(tmp_path, monkeypatch, make_inventory)
    monkeypatch.chdir(tmp_path)
    assert program.run(["init", "train", "--region", "us-west-2", "--type", "p5.48xlarge"], screen.output) == 2
    assert "there is no folder" not in screen.err, "only the cluster's name is a reason to refuse"


def known(home: Path, monkeypatch: pytest.MonkeyPatch, make_inventory: MakeInventory) -> None:
    """Makes a cluster of two nodes known on this computer."""
    monkeypatch.setenv("CLUSTERCTL_HOME", str(home))
    (home / "inventory").mkdir()
    text = json.dumps(inventory_to_json(make_inventory(size=2)))
    (home / "inventory/train.json").write_text(text)


def completion_of(verb: str, name: str, typed: str, **before: tuple[str, ...]) -> list[str]:
    command = importlib.import_module(module_of(verb)).command
    context = click.Context(command)
    context.params.update(before)
    (parameter,) = [parameter for parameter in command.params if parameter.name == name]
    return [item.value for item in parameter.shell_complete(context, typed)]


def test_every_verb_has_a_module_with_a_command_and_help() -> None:
    for verb in VERBS:
        command = importlib.import_module(module_of(verb)).command
        assert isinstance(command, click.Command)
        assert command.name == verb
        assert "Example" in (command.help or ""), verb


def test_the_version_is_the_package_s() -> None:
    pyproject = Path(__file__).resolve().parents[3] / "pyproject.toml"
    assert tomllib.loads(pyproject.read_text())["project"]["version"] == VERSION


def test_nodes_asks_nobody(screen: Screen, own_home: Path, make_inventory: MakeInventory) -> None:
    (own_home / "inventory").mkdir(parents=True)
    (own_home / "inventory" / "train.json").write_text(json.dumps(inventory_to_json(make_inventory(size=2))))
    assert program.run(["nodes"], screen.output) == 0
    assert screen.out.splitlines() == [
        "train · us-west-2b · 2 × p5.48xlarge · 16 × H100 80GB",
        "",
        "  node     rank  private ip  instance",
        "  train-0     0  10.0.8.0    i-00000000000000000",
        "  train-1     1  10.0.8.1    i-00000000000000001",
    ]


def test_nodes_as_json_has_every_node(screen: Screen, own_home: Path, make_inventory: MakeInventory) -> None:
    (own_home / "inventory").mkdir(parents=True)
    (own_home / "inventory" / "train.json").write_text(json.dumps(inventory_to_json(make_inventory())))
    assert program.run(["nodes", "--json"], screen.output) == 0
    shown = json.loads(screen.out)
    assert [node["private_ip"] for node in shown["nodes"]] == [f"10.0.8.{n}" for n in range(4)]


def test_schema_prints_the_schema_of_cluster_yaml(screen: Screen) -> None:
    assert program.run(["schema"], screen.output) == 0
    assert json.loads(screen.out)["title"] == "cluster.yaml"
