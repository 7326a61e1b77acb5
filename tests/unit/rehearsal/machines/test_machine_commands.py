"""What is typed to start and disturb machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import bubble, container, process_supervisor
from clusterctl_rehearsal.machines.disturbance import full_rate_argv, healing_rules, partition_rules, rate_argv
from clusterctl_rehearsal.machines.network import bridge_commands
from clusterctl_rehearsal.machines.owners import first_other_root, parse_owner
from clusterctl_rehearsal.machines.processes import parse_holder, parse_machine, parse_supervisor

from tests.unit.rehearsal.machines.machine_specs import machine_spec

SPEC = machine_spec(2, shares={"/srv/fs:x": "/mnt/fsx"}, read_only_shares={"/opt/torch": "/opt/torch"})
HOST = bubble.HostRoot(folders=("etc", "home", "usr"), links=(("bin", "usr/bin"),), read_only=("lib64",))


def bubble_argv(python_folder: str = "/usr") -> tuple[str, ...]:
    return bubble.bwrap_argv(SPEC, disk="/d", host=HOST, python="/usr/bin/python3", python_folder=python_folder)


def follows(argv: tuple[str, ...], *words: str) -> bool:
    return any(argv[place : place + len(words)] == words for place in range(len(argv)))


def test_a_container_gets_no_capability_but_its_own_firewall() -> None:
    argv = container.nspawn_argv(SPEC, disk="/d")
    assert [word for word in argv if word.startswith("--capability")] == ["--capability=CAP_NET_ADMIN"]


def test_a_container_is_named_booted_and_never_registered() -> None:
    argv = container.nspawn_argv(SPEC, disk="/d")
    assert {"--directory=/d", "--hostname=train-2", "--register=no", "--keep-unit", "--boot"} <= set(argv)
    assert not any(word.startswith("--network") for word in argv)


def test_a_colon_in_a_shared_path_is_escaped() -> None:
    argv = container.nspawn_argv(SPEC, disk="/d")
    assert "--bind=/srv/fs\\:x:/mnt/fsx" in argv
    assert "--bind-ro=/opt/torch:/opt/torch" in argv


def test_launches_survive_being_written_down() -> None:
    launch = container.launch(SPEC, lower="/image", disk="/d")
    assert container.from_json(container.to_json(launch)) == launch
    bubble_launch = bubble.BubbleLaunch(
        argv=bubble_argv(), bridge_port="v", mac="m", address="a", prefix_length=20, gateway_ip="g"
    )
    assert bubble.from_json(bubble.to_json(bubble_launch)) == bubble_launch


@pytest.mark.parametrize(
    ("code", "words"), [(0, "powered off"), (-9, "killed by signal 9"), (1, "ended with exit code 1")]
)
def test_an_end_is_told_in_words(code: int, words: str) -> None:
    assert container.how_it_ended(code) == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "powered off"),
        (3, "its deadline passed"),
        (1, "ended with exit code 1"),
        (128, "ended with exit code 128"),
        (137, "killed by signal 9"),
        (-15, "killed by signal 15"),
    ],
)
def test_an_end_of_a_process_machine_is_told_in_words(code: int, words: str) -> None:
    assert process_supervisor.how_it_ended(code) == words


def test_a_bubble_is_one_user_with_namespaces_of_its_own() -> None:
    argv = bubble_argv()
    assert {"--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-ipc"} <= set(argv)
    assert follows(argv, "--uid", "1000")
    assert follows(argv, "--hostname", "train-2")
    assert follows(argv, "--symlink", "usr/bin", "/bin")
    assert "--unshare-net" not in argv  # its supervisor has put it into the machine's network already


def test_a_bubble_shows_an_interpreter_outside_usr() -> None:
    assert not follows(bubble_argv(), "--ro-bind", "/usr", "/usr")
    assert follows(bubble_argv("/opt/python"), "--ro-bind", "/opt/python", "/opt/python")


def test_a_machine_is_known_by_the_command_line_of_its_bubble() -> None:
    assert parse_machine(bubble_argv()) == ("train", "train-2")


@pytest.mark.parametrize("argv", [[], ["vi"], ["grep", "first_process.py"]])
def test_other_processes_are_no_machines(argv: list[str]) -> None:
    assert parse_machine(argv) is None
    assert parse_supervisor(7, argv) is None
    assert parse_holder(7, argv) is None


def test_a_machine_says_whose_it_is_after_its_supervisor_was_killed() -> None:
    booted = container.nspawn_argv(SPEC, disk="/ada/rehearsal/machines/train/train-2/disk")
    host = bubble.HostRoot(folders=("etc", "usr"), links=(), read_only=())
    unprivileged = bubble.bwrap_argv(
        SPEC, disk="/ada/rehearsal/machines/train/train-2/upper", host=host, python="/usr/bin/python3", python_folder=""
    )
    supervisor = ["python3", "-S", "-m", "clusterctl_rehearsal.machines.supervisor", "/r", "train", "train-2"]
    assert parse_owner(booted) == ("/ada/rehearsal/machines", "train")
    assert parse_owner(unprivileged) == ("/ada/rehearsal/machines", "train")
    assert parse_owner(supervisor) == ("/r", "train")
    assert parse_owner(["vi", "/ada/rehearsal/machines/train/train-2/disk"]) is None


def test_supervisors_and_holders_are_known_by_their_command_line() -> None:
    python = ["/usr/bin/python3", "-S", "-m"]
    supervisor = parse_supervisor(7, [*python, "clusterctl_rehearsal.machines.supervisor", "/r", "train", "train-2"])
    assert supervisor is not None
    assert (supervisor.process_id, supervisor.cluster, supervisor.node) == (7, "train", "train-2")
    holder = parse_holder(8, [*python, "clusterctl_rehearsal.machines.holder", "/r", "train"])
    assert holder is not None
    assert (holder.process_id, holder.root, holder.cluster) == (8, "/r", "train")


def test_a_partition_cuts_both_ways_and_can_be_said_twice() -> None:
    rules = partition_rules("train-0", "train-1")
    assert '"v-train-0" . "v-train-1", "v-train-1" . "v-train-0"' in rules
    assert all(line.startswith(("add", "flush")) for line in rules.splitlines())


def test_healing_needs_no_partition() -> None:
    assert healing_rules().splitlines()[0].startswith("add table")


def test_a_limit_grows_its_burst_with_its_rate() -> None:
    def burst(rate_mbit: int) -> int:
        argv = rate_argv("host0", rate_mbit)
        return int(argv[argv.index("burst") + 1].removesuffix("b"))

    assert burst(10) == 32 * 1024
    assert burst(1000) > burst(100)
    assert full_rate_argv("host0")[:2] == ("qdisc", "del")


def test_the_gateway_address_carries_the_length_of_the_whole_network() -> None:
    assert "addr replace 10.0.0.1/16 dev br0" in bridge_commands("10.0.0.0/16", "10.0.0.1")


def test_machines_of_one_name_are_of_the_home_that_started_them(tmp_path: Path) -> None:
    """Of a home that was removed they are nobody's."""
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
    roots = (own, other, tmp_path / "removed")
    found = [(str(root), "train") for root in roots]
    assert first_other_root(own, "train", found) == other
    assert first_other_root(own, "train", [found[0], found[2]]) is None
    assert first_other_root(own, "another", found) is None
