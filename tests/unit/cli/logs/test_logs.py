"""Logs: the times of lines, the rows that a node's reader prints, the files it finds, lines merged and shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # fields of a request

import pytest
from clusterctl.logs.following import HOLD_S, MOST_HELD, End, Notice, merged
from clusterctl.logs.line_time import SourceClock, without_time, written_at_s
from clusterctl.logs.request import LogRequest
from clusterctl.logs.show import log_head, log_json, nothing_line
from clusterctl.logs.source import Source, chosen_sources
from clusterctl.logs.stream import LogLine, NodeStream, SharedFiles
from clusterctl.on_node.log_files import FoundFiles, LogFile, absence_of_file, expanded
from clusterctl.on_node.log_reader import absence_in_journal
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
NOON_S = NOON.timestamp()


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("2026-11-21T12:00:05Z network: waits", 5),
        ("2026-11-21 12:00:05,250 - util.py[DEBUG]: x", 5.25),
        ("2026-11-21T12:00:05.123456789+00:00 x", 5.123456),
        ("2026-11-21T14:00:05+0200 x", 5),
        ("[2026-11-21 12:00:05] x", 5),
        ("Nov 21 12:00:05 ip-10-0-8-1 sshd[1]: x", 5),
        ("Nov  3 12:00:00 x", -18 * 86400),
        ("step 12 loss 3.4", None),
        ("2026-99-21T12:00:05Z x", None),
        ("", None),
    ],
)
def test_a_lines_own_time_is_read_in_the_usual_formats(line: str, seconds: float | None) -> None:
    at_s = written_at_s(line, around_s=NOON_S)
    assert at_s == (None if seconds is None else pytest.approx(NOON_S + seconds))


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("2026-11-21T12:00:05Z network: waits", "network: waits"),
        ("2026-11-21 12:00:05,250 - util.py[DEBUG]: x", "util.py[DEBUG]: x"),
        ("[2026-11-21 12:00:05] x", "x"),
        ("Nov 21 12:00:05 ip-10-0-8-1 sshd[1]: x", "ip-10-0-8-1 sshd[1]: x"),
        ("step 12", "step 12"),
        ("2026-11-21T12:00:05Z", "2026-11-21T12:00:05Z"),
        ("  - indented", "  - indented"),
    ],
)
def test_a_view_with_times_leaves_the_lines_own_out(line: str, rest: str) -> None:
    assert without_time(line) == rest


def test_a_syslog_line_of_december_read_in_january_is_of_last_year() -> None:
    january = datetime(2027, 1, 2, tzinfo=UTC).timestamp()
    at_s = written_at_s("Dec 31 23:59:59 x", around_s=january)
    assert at_s == datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def test_a_line_without_a_time_has_its_predecessors_and_none_runs_backwards() -> None:
    clock = SourceClock()
    assert clock.at_s("no time yet", NOON_S, is_exact=False) == NOON_S
    assert clock.at_s("2026-11-21T12:00:09Z x", NOON_S + 60, is_exact=False) == NOON_S + 9
    assert clock.at_s("  traceback", NOON_S + 60, is_exact=False) == NOON_S + 9
    assert clock.at_s("2026-11-21T12:00:01Z late", NOON_S + 60, is_exact=False) == NOON_S + 9
    assert clock.at_s("live", NOON_S + 60, is_exact=True) == NOON_S + 60


class Heard:
    """One node's stream on a computer whose clock shows noon."""

    def __init__(self, inventory: Inventory) -> None:
        self.lines: list[LogLine] = []
        self.troubles: list[str] = []
        self.stream = NodeStream(
            inventory.nodes[0], on_line=self.lines.append, on_trouble=self.troubles.append, now=lambda: NOON_S
        )


def rows(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_nodes_times_are_told_by_this_computers_clock(make_inventory: MakeInventory) -> None:
    heard = Heard(make_inventory(size=1))
    heard.stream.feed(
        b"Welcome to Ubuntu\n" + rows({"now": NOON_S + 30}, ["k", "c1", NOON_S + 25, True, "one\ntwo", "", False])
    )
    assert [(line.at_s, line.text) for line in heard.lines] == [(NOON_S - 5, "one"), (NOON_S - 5, "two")]
    assert heard.stream.places == {"k": "c1"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\r 10%\r 20%\r 30%", [" 30%"]),
        ("10%\r20%\r", ["20%"]),
        ("\r 99%\r100%\nsaved\r\n", ["100%", "saved"]),
        ("saved\r", ["saved"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("a\x0b\x0c\x1c\x85\u2028b", ["a\x0b\x0c\x1c\x85\u2028b"]),
        ("", [""]),
    ],
)
def test_a_line_is_shown_as_a_terminal_shows_it_in_the_end(
    make_inventory: MakeInventory, text: str, shown: list[str]
) -> None:
    """A progress bar is one line, however often it was drawn anew."""
    heard = Heard(make_inventory(size=1))
    heard.stream.feed(rows({"now": NOON_S}, ["/run/a.log", "7:9", NOON_S, True, text, "/run/a.log", False]))
    assert [line.text for line in heard.lines] == shown


def test_the_last_lines_of_a_file_with_progress_bars_are_no_more_lines_when_they_are_shown(
    make_inventory: MakeInventory, tmp_path: Path
) -> None:
    heard, path = Heard(make_inventory(size=1)), tmp_path / "train.log"
    bar = "".join(f"\r{n:3}%|{'#' * n:100}|" for n in range(101))
    path.write_bytes("".join(f"epoch {n}\n{bar}\n" for n in range(50)).encode())
    file = LogFile(str(path), "", 3)
    for place, changed_s, text in file.lines(False):
        heard.stream.feed(rows([str(path), place, changed_s, False, text, str(path), False]))
    file.close()
    assert [line.text[:9] for line in heard.lines] == ["100%|####", "epoch 49", "100%|####"]


def test_half_a_row_of_a_lost_connection_is_read_again_and_not_doubled(make_inventory: MakeInventory) -> None:
    heard = Heard(make_inventory(size=1))
    second = rows(["k", "c2", NOON_S, True, "second", "", False])
    heard.stream.feed(rows({"now": NOON_S}, ["k", "c1", NOON_S, True, "first", "", False]) + second[:-5])
    assert heard.stream.places == {"k": "c1"}
    heard.stream.begin()
    heard.stream.feed(rows({"now": NOON_S}) + second)
    assert [line.text for line in heard.lines] == ["first", "second"]


def test_a_line_of_a_file_that_several_nodes_have_is_told_once(make_inventory: MakeInventory) -> None:
    nodes, shared = make_inventory(size=2).nodes, SharedFiles()
    lines: list[LogLine] = []
    troubles: list[str] = []
    streams = [
        NodeStream(node, on_line=lines.append, on_trouble=troubles.append, now=lambda: NOON_S, shared=shared)
        for node in nodes
    ]

    def row(offset: int, text: str, *, inode: int = 7, is_shared: bool = True) -> bytes:
        return rows(["/shared/*.log", f"{inode}:{offset}", NOON_S, True, text, "/shared/a.log", is_shared])

    streams[0].feed(row(4, "one") + row(8, "two"))
    streams[1].feed(row(4, "one") + row(8, "two") + row(14, "three"))
    streams[0].feed(row(14, "three") + row(3, "anew, after it was emptied") + row(5, "rotated", inode=8))
    streams[1].feed(row(9, "node 1's own", is_shared=False))
    assert [line.text for line in lines] == [
        *("one", "two", "three", "anew, after it was emptied", "rotated", "node 1's own")
    ]
    assert [log_head(line, has_sources=False)[:8] for line in lines] == [*["[shared]"] * 5, "[Node 1]"]
    assert "[/shared/a.log]" in log_head(lines[0], has_sources=False), "the file that the pattern stood for"
    assert troubles == ["/shared/a.log is on shared storage: each of its lines is shown once, as [shared]"] * 2
    assert json.loads(streams[1].places["/shared/*.log"]) == {"/shared/a.log": "7:9"}


@pytest.mark.parametrize("offset", ["²", "9" * 5000, "", "-1"])
def test_a_place_in_a_shared_file_that_is_none_costs_no_line(make_inventory: MakeInventory, offset: str) -> None:
    heard = Heard(make_inventory(size=1))
    row = ["/shared/*.log", f"7:{offset}", NOON_S, True, "one", "/shared/a.log", True]
    heard.stream.feed(rows({"now": NOON_S}, row))
    heard.stream.feed(rows(["kernel", "c1", NOON_S, True, "two", "", False]))
    assert [line.text for line in heard.lines] == ["one", "two"]


def test_words_are_expanded_on_the_node(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("rank-1.log", "rank-2.log", "rank-2.err"):
        (run / name).touch()
    (run / "folder.log").mkdir()
    variables = {"NODE_RANK": "2", "RUN": str(run)}
    found = {
        word: ([Path(path).name for path in paths], trouble)
        for word in ("$RUN/rank-${NODE_RANK}.log", "$RUN/*.log", "$RUN/*.txt", "/x/$FOO/y", "/plain.log")
        for paths, trouble in [expanded(word, variables)]
    }
    assert found == {
        "$RUN/rank-${NODE_RANK}.log": (["rank-2.log"], ""),
        "$RUN/*.log": (["rank-1.log", "rank-2.log"], ""),
        "$RUN/*.txt": ([], f"{run}/*.txt: no file matches"),
        "/x/$FOO/y": ([], "/x/$FOO/y: there is no $FOO in this node's environment"),
        "/plain.log": (["plain.log"], ""),
    }
    (run / "[1].log").touch()
    assert expanded(f"{run}/[1].log", {})[0] == [f"{run}/[1].log"], "a file of that very name"


def test_files_on_storage_that_nodes_share_are_known_and_scratch_is_not(tmp_path: Path) -> None:
    for folder in ("var/lib/clusterctl", "proc/self", "etc/clusterctl"):
        (tmp_path / folder).mkdir(parents=True)
    mounts = [{"path": "/shared", "kind": "efs"}, {"path": "/scratch", "kind": "nvme"}]
    (tmp_path / "var/lib/clusterctl/birth.json").write_text(json.dumps({"mounts": mounts}))
    (tmp_path / "proc/self/mounts").write_text("overlay / overlay rw 0 0\nnas:/home /home nfs4 rw 0 0\n")
    found = FoundFiles(["/scratch/$NODE_RANK.log"], {}, 0, root=str(tmp_path))
    known = {path: found.is_shared(path) for path in ("/shared/a", "/scratch/a", "/home/ada/a", "/shared-not/a")}
    assert known == {"/shared/a": True, "/scratch/a": False, "/home/ada/a": True, "/shared-not/a": False}
    assert found.look() == ["/scratch/$NODE_RANK.log: there is no $NODE_RANK in this node's environment"]
    assert not found.readable


def test_a_trouble_is_told_once(make_inventory: MakeInventory) -> None:
    heard = Heard(make_inventory(size=1))
    for _ in range(2):
        heard.stream.begin()
        heard.stream.feed(rows({"source": "x", "trouble": "/x is not there", "missing": True}, {}))
    heard.stream.feed(rows({"source": "y", "trouble": "/y: only its last MiB was read", "missing": False}, {}))
    assert heard.troubles == ["/x is not there", "/y: only its last MiB was read"]
    assert heard.stream.missing == {"x"}
    assert not heard.stream.over
    heard.stream.feed(rows({"source": "kernel", "trouble": "no kernel log", "missing": True, "over": True}))
    assert heard.stream.over == {"kernel"}


def test_a_machine_without_a_journal_and_a_container_without_a_kernel_log_say_so(tmp_path: Path) -> None:
    assert absence_in_journal([], str(tmp_path)) == ("no journal is kept on this machine", True)
    (tmp_path / "run/log/journal/0123").mkdir(parents=True)
    (tmp_path / "run/log/journal/0123/system.journal").touch()
    assert absence_in_journal(["-k"], str(tmp_path)) == ("", False)
    marker = tmp_path / "run/systemd/container"
    marker.parent.mkdir(parents=True)
    marker.write_text("systemd-nspawn")
    absence, is_over = absence_in_journal(["-k"], str(tmp_path))
    assert absence.startswith("no kernel log: this machine is a container")
    assert is_over
    assert absence_in_journal([], str(tmp_path)) == ("", False)


def test_a_folder_is_no_log_and_says_so(tmp_path: Path) -> None:
    assert absence_of_file(str(tmp_path)) == "is a folder"
    assert absence_of_file(str(tmp_path / "a.log")) == "is not there"
    (tmp_path / "a.log").write_text("")
    assert absence_of_file(str(tmp_path / "a.log")) == ""


def line(at_s: float, text: str, *, slot: int = 0) -> LogLine:
    return LogLine(slot=slot, name=f"train-{slot}", source="k", at_s=at_s, text=text)


def test_lines_wait_for_older_ones_of_other_nodes() -> None:
    arrivals: Iterator[LogLine | Notice | None] = iter(
        [line(2, "later", slot=1), Notice(name="train-2", text="lost"), line(1, "earlier"), None, line(0, "too old")]
    )
    clock = [0.0]

    def take(timeout_s: float) -> LogLine | Notice | None:
        item = next(arrivals, None)
        clock[0] += HOLD_S if item is None else 0.0
        return item

    lines = merged(take, since_s=1, now=lambda: clock[0])
    assert [next(lines) for _ in range(3)] == [
        Notice(name="train-2", text="lost"),
        line(1, "earlier"),
        line(2, "later", slot=1),
    ]


def test_following_ends_with_the_last_lines_once_nobody_can_send_another() -> None:
    arrivals: Iterator[LogLine | End | None] = iter([line(2, "last"), End(), line(1, "on its way")])
    clock = [0.0]

    def take(timeout_s: float) -> LogLine | End | None:
        item = next(arrivals, None)
        clock[0] += HOLD_S if item is None else 0.0
        return item

    assert [item.text for item in merged(take, now=lambda: clock[0])] == ["on its way", "last"]


def test_lines_that_wait_for_older_ones_are_not_more_than_so_many() -> None:
    """Where one node's history goes on and on, each line of it older than all that the others have sent."""
    arrivals = iter([line(-number, str(number)) for number in range(MOST_HELD + 2)])
    lines = merged(lambda timeout_s: next(arrivals), now=lambda: 0.0)
    assert next(lines).text == str(MOST_HELD)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ((), {"bootstrap": Source(files=("/var/log/clusterctl.log",))}),
        (("/a/b.log",), {"/a/b.log": Source(files=("/a/b.log",))}),
        (("setup.sh",), {"setup.sh": Source(files=("/var/log/clusterctl/setup.sh.log",))}),
        (("unit:ssh.service",), {"unit:ssh.service": Source(journal=("-u", "ssh.service"))}),
    ],
)
def test_a_source_is_named_by_its_word_a_path_a_script_or_a_unit(
    words: tuple[str, ...], chosen: dict[str, Source]
) -> None:
    assert chosen_sources(words) == chosen


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("kernal", "did you mean kernel"),
        ("sshd", "unit:NAME"),
        ("unit:-x", "unit:NAME"),
        ("a.log", "/a/file"),
        ("train-1", "a node is named with --node"),
        ("2", "a node is named with --node"),
    ],
)
def test_a_word_that_is_no_source_is_refused(word: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen_sources((word,))


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({}, "nothing in setup.sh of train-[0-3]"),
        ({"grep": "Xid"}, "nothing in setup.sh of train-[0-3] that matches --grep Xid"),
        ({"since_s": NOON_S}, "nothing in setup.sh of train-[0-3] since 12:00:00 UTC"),
    ],
)
def test_a_log_without_a_line_is_said_to_be_empty(
    make_inventory: MakeInventory, changed: dict[str, Any], note: str
) -> None:
    request = LogRequest(
        **{
            "inventory": make_inventory(),
            "nodes": make_inventory().nodes,
            "sources": chosen_sources(["setup.sh"]),
            "since_s": None,
            "grep": None,
            "is_followed": False,
            "timeout_s": 60,
            "keys": LoginKeys(keys=(), described=""),
            "deadlines": Deadlines(),
            **changed,
        }
    )
    assert nothing_line(request) == note


def test_a_line_is_shown_to_people_and_written_as_json() -> None:
    entry = line(NOON_S, "NVRM: Xid (PCI:0000:9b:00): 79", slot=3)
    assert log_head(entry, has_sources=False) == "[Node 3] [12:00:00] "
    assert log_head(entry, has_sources=False, has_names=True) == "[train-3] [12:00:00] "
    assert log_head(entry, has_sources=True) == "[Node 3] [12:00:00] [k] "
    assert log_json(entry) == {
        "node": "train-3",
        "slot": 3,
        "time": "2026-11-21T12:00:00+00:00",
        "source": "k",
        "file": None,
        "is_shared": False,
        "line": "NVRM: Xid (PCI:0000:9b:00): 79",
    }
