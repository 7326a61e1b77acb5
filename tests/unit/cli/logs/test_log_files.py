"""The files of one source on a node, as its log reader reads them: the last lines, rotation, files that come later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterctl.on_node.log_files import FoundFiles, LogFile, expanded

OpenLog = Callable[[Path, str, int], LogFile]


@pytest.fixture
def open_log() -> Iterator[OpenLog]:
    """A function that opens a log at a place, with so many last lines; the log is closed after the test."""
    with contextlib.ExitStack() as opened:

        def open_one(path: Path, place: str, tail: int) -> LogFile:
            return opened.enter_context(contextlib.closing(LogFile(str(path), place, tail)))

        yield open_one


def texts(file: LogFile, *, is_last: bool = False) -> list[str]:
    return [text for _, _, text in file.lines(is_last)]


def test_a_file_is_followed_through_rotation_and_truncation(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("1\n2\nhalf")
    file = open_log(path, "", 0)
    assert texts(file) == ["1", "2"]
    with path.open("a") as more:
        more.write(" done\n3\n")
    path.rename(tmp_path / "a.log.1")
    path.write_text("4\n")
    assert texts(file) == ["half done", "3", "4"]
    path.write_text("")
    assert texts(file) == []
    path.write_text("5\n")
    assert texts(file) == ["5"]


def test_a_file_that_cannot_be_opened_yet_after_a_rotation_is_tried_again(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("1\nhalf")
    file = open_log(path, "", 0)
    assert texts(file) == ["1"]
    path.rename(tmp_path / "a.log.1")
    path.mkdir()
    assert texts(file) == ["half"]
    assert texts(file) == []
    path.rmdir()
    path.write_text("2\n")
    assert texts(file) == ["2"]


def test_a_file_that_vanishes_while_a_pattern_is_looked_up_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).touch()
    changed_s = os.path.getmtime

    def vanishing(path: str) -> float:
        if path.endswith("a.log"):
            raise FileNotFoundError(path)
        return changed_s(path)

    monkeypatch.setattr(os.path, "getmtime", vanishing)
    assert expanded(f"{tmp_path}/*.log", {}) == ([f"{tmp_path}/b.log"], "")


def test_a_file_is_read_on_from_a_place_even_after_a_rotation(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("1\n2\n3\n")
    (_, (place, _, _), _) = list(open_log(path, "", 0).lines(False))
    assert texts(open_log(path, place, 10)) == ["3"]
    path.rename(tmp_path / "a.log.1")
    path.write_text("4\n")
    assert texts(open_log(path, place, 10)) == ["3", "4"]


def test_a_file_that_is_not_the_one_of_the_place_is_read_from_its_beginning(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("new 1\nnew 2\n")
    assert texts(open_log(path, "1:4", 1)) == ["new 1", "new 2"]


def test_following_begins_with_the_last_lines(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{n}\n" for n in range(100)))
    assert texts(open_log(path, "", 3)) == ["97", "98", "99"]


@pytest.mark.parametrize(
    ("text", "tail", "last"),
    [
        ("1\n2\n 10%\r 20%\r 30%\n4\n", 2, [" 10%\r 20%\r 30%", "4"]),
        ("1\n2\x0b\x0c\x1c\x85\u2028\n3", 2, ["2\x0b\x0c\x1c\x85\u2028", "3"]),
        ("1\n2\n\n", 2, ["2", ""]),
        ("1\n2", 9, ["1", "2"]),
        ("", 3, []),
    ],
)
def test_only_a_newline_ends_one_of_the_last_lines(
    tmp_path: Path, open_log: OpenLog, text: str, tail: int, last: list[str]
) -> None:
    """A progress bar is one line, however often it was drawn anew."""
    path = tmp_path / "a.log"
    path.write_bytes(text.encode())
    assert texts(open_log(path, "", tail), is_last=True) == last


def test_a_followed_progress_bar_is_given_now_and_then_as_it_was_drawn_last(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("begin\n")
    file = open_log(path, "", 1)
    assert texts(file) == ["begin"]
    given: list[str] = []
    for step in range(100):
        with path.open("a") as bar:
            bar.write(f"\r{step:0>3} {'#' * 195}")
        given += texts(file)
    assert 2 < len(given) < 10
    assert all(text.rpartition("\r")[2].endswith(" " + "#" * 195) for text in given)
    with path.open("a") as bar:
        bar.write("\r100 done\nend\n")
    assert [text.rpartition("\r")[2] for text in texts(file)] == ["100 done", "end"]


def test_a_file_is_read_on_from_within_a_progress_bar(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"\r{step:0>5}" for step in range(2000)))
    ((place, _, text),) = open_log(path, "", 0).lines(False)
    assert text.endswith("\r01998")
    assert texts(open_log(path, place, 0), is_last=True) == ["\r01999"]


def test_a_progress_bar_that_is_longer_than_the_longest_line_is_one_line(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"\r{step:0>9}" for step in range(50_000)) + "\nend\n")
    first, second = texts(open_log(path, "", 2), is_last=True)
    assert first.endswith("\r000049999")
    assert second == "end"


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_a_line_longer_than_the_longest_comes_in_parts_and_whole(
    tmp_path: Path, open_log: OpenLog, ending: str
) -> None:
    """Also where one read ends with its carriage return."""
    path = tmp_path / "a.log"
    for length in (*range(65_530, 65_540), *range(131_066, 131_076)):
        path.write_bytes(b"x" * length + ending.encode())
        assert "".join(texts(open_log(path, "", 0))).rstrip("\r") == "x" * length


def test_last_lines_that_do_not_fit_are_cut_at_a_line_s_beginning(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{n:0>99}\n" for n in range(20000)))
    file = open_log(path, "", 15000)
    read = texts(file)
    assert file.is_cut
    assert {len(line) for line in read} == {99}


@pytest.mark.parametrize("tail", [0, 2])
def test_of_one_line_that_is_longer_than_what_is_read_the_end_is_shown(
    tmp_path: Path, open_log: OpenLog, tail: int
) -> None:
    (tmp_path / "a.log").write_text("".join(f"\r step {n:0>20}" for n in range(100_000)))
    read = texts(open_log(tmp_path / "a.log", "", tail), is_last=True)
    assert read[-1].endswith(" step " + "99999".zfill(20))


def test_of_a_long_file_the_end_is_read_and_its_last_unfinished_line(tmp_path: Path, open_log: OpenLog) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{n:0>99}\n" for n in range(20000)) + "end")
    file = open_log(path, "", 0)
    read = texts(file, is_last=True)
    assert file.is_cut
    assert 10000 < len(read) < 10600
    assert read[-2:] == ["19999".zfill(99), "end"]


def test_a_file_may_come_later(tmp_path: Path, open_log: OpenLog) -> None:
    file = open_log(tmp_path / "late.log", "", 10)
    assert texts(file) == []
    (tmp_path / "late.log").write_text("here\n")
    assert texts(file) == ["here"]


@pytest.mark.parametrize("word", ["early.log", "late.log", "*ly.log", "la*.log", "*.log"])
def test_only_files_that_are_there_at_first_begin_with_their_last_lines(tmp_path: Path, word: str) -> None:
    """All of a file that comes later is new, also where a name or a pattern meant nothing before it came."""
    (tmp_path / "early.log").write_text("1\n2\n3\n")
    found = FoundFiles([str(tmp_path / word)], {}, 1, root=str(tmp_path))
    read = dict.fromkeys(("early", "late"), "")
    for _ in range(2):
        found.look()
        for path, file in found.files.items():
            read[Path(path).stem] += "".join(texts(file))
        (tmp_path / "late.log").write_text("4\n5\n6\n")
    for file in found.files.values():
        file.close()
    assert read["early"] == ("3" if word in ("early.log", "*ly.log", "*.log") else "")
    assert read["late"] == ("456" if word in ("late.log", "la*.log", "*.log") else "")


def test_a_file_that_came_while_the_connection_was_lost_is_read_from_its_beginning(tmp_path: Path) -> None:
    early, late = tmp_path / "early.log", tmp_path / "late.log"
    early.write_text("1\n2\n3\n")
    late.write_text("4\n5\n6\n")
    found = FoundFiles([str(tmp_path / "*.log")], {str(early): f"{early.stat().st_ino}:4"}, 1, root=str(tmp_path))
    found.look()
    read = {Path(path).stem: texts(file) for path, file in found.files.items()}
    for file in found.files.values():
        file.close()
    assert read == {"early": ["3"], "late": ["4", "5", "6"]}
