"""A cluster whose state cannot be written: what is told, and what is passed on as it was."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.end_by_tag import TagEnd, end_by_tag, told_why
from clusterctl.system.room import NoRoom, refuse_without_room

from tests.unit.cli.conftest import Screen


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


def test_a_folder_without_room_is_refused_with_what_there_is_and_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoRoom, match=r"free, and a change of a cluster needs .* there: nothing was changed"):
        refuse_without_room(tmp_path, needed_bytes=2**62)
