"""What `clusterctl rehearse clean` holds before it ends anything."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from clusterctl.engine.run_file import new_record, only_run, write_record
from clusterctl.home import Home
from clusterctl.lifecycle.rehearsal_clean import cleaned, hold_for_clean
from clusterctl_infra.errors import EngineError

KNOWN = ("eval@rehearsal", "train@rehearsal")


@pytest.mark.parametrize(
    ("words", "clusters"),
    [
        (["clean", "train"], KNOWN[1:]),
        (["clean", "--", "train"], KNOWN[1:]),
        (["clean", "never-made"], ()),
        (["clean", "--all"], KNOWN),
        (["clean", "--al", "train"], KNOWN),
        (["fault", "kill", "train"], ()),
        (["list"], ()),
        ([], ()),
    ],
)
def test_what_is_cleaned_is_what_the_words_name(words: list[str], clusters: tuple[str, ...]) -> None:
    assert cleaned(words, KNOWN) == clusters


@pytest.mark.parametrize("word", ["train", "--all"])
def test_a_cluster_that_a_command_changes_is_not_cleaned(tmp_path: Path, word: str) -> None:
    home = Home(path=tmp_path)
    with only_run(home, "train@rehearsal", verb="down"), ExitStack() as held:
        write_record(home.run_file("train@rehearsal"), new_record("up", tokens=(), stack="/s/train --rehearse"))
        message = rf"clusterctl up is changing train@rehearsal: started by .* \(pid {os.getpid()}\)"
        with pytest.raises(EngineError, match=message) as refused:
            hold_for_clean(["clean", word], home, held)
    assert (refused.value.exit_code, refused.value.hint) == (1, f"kill -INT {os.getpid()}")


def test_while_one_is_cleaned_no_other_command_begins_with_it(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    with only_run(home, "train@rehearsal", verb="down"):
        pass
    with ExitStack() as held:
        hold_for_clean(["clean", "train"], home, held)
        message = rf"clusterctl rehearse clean is changing train@rehearsal: started by .* \(pid {os.getpid()}\)"
        with pytest.raises(EngineError, match=message), only_run(home, "train@rehearsal", verb="down"):
            pass
        (lock,) = (int(fd) for fd in os.listdir("/proc/self/fd") if _is_lock(int(fd)))
        assert os.get_inheritable(lock), "the program that this process becomes has it, too"
    with only_run(home, "train@rehearsal", verb="down"):
        pass


def _is_lock(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").endswith("train@rehearsal.lock")
    except OSError:
        return False
