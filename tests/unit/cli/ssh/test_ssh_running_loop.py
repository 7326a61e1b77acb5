"""A loop that is given its tasks while it runs, and lines that are cut from what comes."""

from __future__ import annotations

import threading

from clusterctl.ssh.fanout.conversation import LONGEST_LINE_BYTES, Lines
from clusterctl.ssh.fanout.event_loop import NEVER, Stopped, Task, Waiting
from clusterctl.ssh.fanout.running_loop import RunningLoop

PATIENCE_S = 10


class Waiter:
    """A task that counts how often it is resumed, and says how it ended."""

    def __init__(self) -> None:
        self.resumed = 0
        self.has_begun = threading.Event()
        self.is_woken = threading.Event()
        self.was_stopped = False

    def task(self) -> Task:
        self.has_begun.set()
        try:
            while True:
                yield Waiting(for_waking=True, until=NEVER)
                self.resumed += 1
                self.is_woken.set()
        except Stopped:
            self.was_stopped = True
            raise


def test_tasks_come_while_it_runs_and_a_new_one_resumes_no_other() -> None:
    loop, waiters = RunningLoop("test"), [Waiter() for _ in range(50)]
    for waiter in waiters:
        loop.begin(waiter.task())
        assert waiter.has_begun.wait(PATIENCE_S)
    assert [waiter.resumed for waiter in waiters] == [0] * 50
    loop.wake()
    assert all(waiter.is_woken.wait(PATIENCE_S) for waiter in waiters)
    loop.stop()
    assert all(waiter.was_stopped for waiter in waiters)
    loop.stop()  # is no error


def test_lines_are_cut_wherever_the_pieces_end_and_an_endless_one_is_not_kept() -> None:
    heard: list[str] = []
    lines = Lines(heard.append)
    for piece in (b"one\ntw", b"o\n", b"", b"\xc3", b"\xa9\n", b"rest"):
        lines.feed(piece)
    assert heard == ["one", "two", "é"]
    lines.finish()
    assert heard.pop() == "rest"
    for _ in range(3):
        lines.feed(b"x" * LONGEST_LINE_BYTES)
    assert [len(line) for line in heard[3:]] == [2 * LONGEST_LINE_BYTES]
