"""A cluster whose state cannot be written: what is told, and what is passed on as it was."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.end_by_tag import TagEnd, end_by_tag, is_of_stack, told_why, what_is_left
from clusterctl.system.room import NoRoom, refuse_without_room

from tests.unit.cli.cloud.fake_session import clients_of
from tests.unit.cli.conftest import Screen
from tests.unit.cli.cost.paid_cluster import an_inventory


def an_end(folder: Path, why: NoRoom | OSError) -> TagEnd:
    stack = Stack(directory=folder, name="dev", project="train", is_rehearsal_project=False)
    where = Whereabouts(stack=stack, rehearse=False, name="train", region="us-west-2", shown="stacks/train")
    return TagEnd(where=where, is_agreed=True, again="clusterctl down stacks/train", why=why)


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (NoRoom("/home has 4 MiB free, and a change needs 32 MiB there", hint="df -h /home"), "/home has 4 MiB free, "),
        (OSError(errno.EROFS, "Read-only file system", "/home/x"), "/home/x cannot be written (read-only file system)"),
        (OSError(errno.ENOLCK, "No locks available", "/nfs/x"), "/nfs/x is on a file system without locks"),
        (OSError(errno.ENOLCK, "No locks available"), "the home is on a file system without locks"),
    ],
)
def test_why_the_state_cannot_be_written_is_told(why: NoRoom | OSError, told: str) -> None:
    assert told_why(why).startswith(told)


@pytest.mark.parametrize(
    "why",
    [
        OSError(errno.EIO, "Input/output error", "/home/x"),
        OSError(errno.EROFS, "Read-only file system", "/home/x"),
        NoRoom("/home has 4 MiB free", hint="df -h /home"),
    ],
)
def test_without_an_id_that_this_computer_knows_the_refusal_stays_what_it_was(
    why: NoRoom | OSError, tmp_path: Path, screen: Screen
) -> None:
    with pytest.raises(type(why)) as raised:
        end_by_tag(an_end(tmp_path, why), screen.output, Home(path=tmp_path), {})
    assert raised.value is why
    assert screen.err == ""


@pytest.mark.parametrize(
    ("stack_dir", "stack_name", "is_its_own"),
    [("here", "dev", True), ("here", "other", False), ("other", "dev", False), ("gone", "dev", True)],
)
def test_another_stack_s_cluster_of_that_name_is_not_ended(
    stack_dir: str, stack_name: str, is_its_own: bool, tmp_path: Path
) -> None:
    for folder in ("here", "other"):
        (tmp_path / folder).mkdir()
    known = replace(an_inventory(), stack_dir=str(tmp_path / stack_dir), stack_name=stack_name)
    end = an_end(tmp_path / "here", OSError(errno.EROFS, "Read-only file system", "/home/x"))
    assert is_of_stack(known, end.where) is is_its_own


def test_a_machine_list_that_aws_does_not_give_keeps_no_reservation_alive(tmp_path: Path) -> None:
    clients = clients_of({}, refused={("ec2", "describe_instances"): "InternalError"})
    known = replace(an_inventory(), region="us-west-2")
    left = what_is_left(known, clients, Home(path=tmp_path), tell=no_word, pause=lambda: None)
    assert left[0].startswith("instance: not known (")
    assert "describe_capacity_reservations" in vars(clients)["session"].asked


def no_word(what: str) -> None:
    raise AssertionError(what)


def test_a_folder_without_room_is_refused_with_what_there_is_and_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoRoom, match=r"free, and a change of a cluster needs .* there: nothing was changed"):
        refuse_without_room(tmp_path, needed_bytes=2**62)
