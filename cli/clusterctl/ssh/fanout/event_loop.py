"""Many tasks on one thread: each is a generator that says what it waits for, and is resumed when that is there."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a task waits for: its descriptor to be ready or the loop to be woken, until this time at most."""

    descriptor: int = -1
    for_reading: bool = False
    for_writing: bool = False
    for_waking: bool = False
    until: float = NEVER
    """On the monotonic clock; a time that is past lets the others have a turn."""


Task = Generator[Waiting, bool, None]
"""A task is sent True when something has come to be read, False for everything else."""


class Stopped(BaseException):
    """Raised in a task when all of them are to end."""


@dataclass(slots=True)
class _Entry:
    task: Task
    waiting: Waiting
    turn: int
    """Which of the task's waits this is: the deadline of an older wait no longer counts."""


class EventLoop:
    """Runs tasks from `source` until it and they are at their end; at most `width` at a time."""

    def __init__(self, source: Iterator[Task], *, width: int) -> None:
        self._source = source
        self._width = width
        self._epoll = select.epoll()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._epoll.register(self._wake_reader, select.EPOLLIN)
        self._entries: dict[Task, _Entry] = {}
        self._by_descriptor: dict[int, _Entry] = {}
        self._deadlines: list[tuple[float, int, _Entry]] = []
        self._numbers = itertools.count()
        self._is_stopping = False

    def wake(self) -> None:
        """Resumes the tasks that wait for it; from any thread."""
        with contextlib.suppress(OSError):  # full: it will wake up anyway; closed: it has ended
            self._wake_writer.send(b"w")

    def look(self) -> None:
        """Has the loop ask its source for more tasks, without resuming any; from any thread."""
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"l")

    def stop(self) -> None:
        """Raises Stopped in every task, and takes no new ones; from any thread."""
        self._is_stopping = True
        self.wake()

    def run(self) -> None:
        """Returns when every task has ended."""
        try:
            has_stopped_all = False
            while True:
                if self._is_stopping and not has_stopped_all:
                    has_stopped_all = True
                    self._stop_all()
                self._fill()
                if not self._entries:
                    return
                self._turn()
        finally:
            self._epoll.close()
            self._wake_reader.close()
            self._wake_writer.close()

    def _fill(self) -> None:
        while len(self._entries) < self._width and not self._is_stopping:
            task = next(self._source, None)
            if task is None:
                return
            self._resume(task, next)

    def _turn(self) -> None:
        for descriptor, events in self._epoll.poll(self._sleep_s()):
            if descriptor == self._wake_reader.fileno():
                self._woken()
            elif entry := self._by_descriptor.get(descriptor):
                self._resume(entry.task, _with_news if events & ~select.EPOLLOUT else _without_news)
        now = time.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, turn, entry = heapq.heappop(self._deadlines)
            if entry.turn == turn and entry.task in self._entries:
                self._resume(entry.task, _without_news)

    def _sleep_s(self) -> float:
        """Seconds until the next deadline that still counts; -1 without one."""
        while self._deadlines:
            ends_at, turn, entry = self._deadlines[0]
            if entry.turn == turn and entry.task in self._entries:
                return max(0.0, ends_at - time.monotonic())
            heapq.heappop(self._deadlines)
        return -1

    def _woken(self) -> None:
        signals = b""
        with contextlib.suppress(BlockingIOError):
            signals = self._wake_reader.recv(4096)
        if b"w" not in signals:
            return
        for entry in [entry for entry in self._entries.values() if entry.waiting.for_waking]:
            self._resume(entry.task, _without_news)

    def _stop_all(self) -> None:
        for task in list(self._entries):
            self._resume(task, _stopped)

    def _resume(self, task: Task, step: Callable[[Task], Waiting]) -> None:
        try:
            waiting = step(task)
        except (StopIteration, Stopped):
            self._forget(task)
            return
        entry = self._entries.get(task)
        if entry is None:
            entry = self._entries[task] = _Entry(task, Waiting(), 0)
        self._register(entry, waiting)
        entry.waiting, entry.turn = waiting, next(self._numbers)
        if waiting.until != NEVER:
            heapq.heappush(self._deadlines, (waiting.until, entry.turn, entry))

    def _register(self, entry: _Entry, new: Waiting) -> None:
        """Tells epoll only what has changed."""
        old = entry.waiting
        if (old.descriptor, old.for_reading, old.for_writing) == (new.descriptor, new.for_reading, new.for_writing):
            return
        events = (select.EPOLLIN if new.for_reading else 0) | (select.EPOLLOUT if new.for_writing else 0)
        if old.descriptor == new.descriptor:
            self._epoll.modify(new.descriptor, events)
            return
        self._unregister(entry)
        if new.descriptor >= 0:
            self._epoll.register(new.descriptor, events)
            self._by_descriptor[new.descriptor] = entry

    def _unregister(self, entry: _Entry) -> None:
        descriptor = entry.waiting.descriptor
        if self._by_descriptor.get(descriptor) is entry:
            del self._by_descriptor[descriptor]
            try:
                self._epoll.unregister(descriptor)
            except (OSError, ValueError):
                pass  # it was closed, and with that the kernel has forgotten it

    def _forget(self, task: Task) -> None:
        entry = self._entries.pop(task, None)
        if entry is not None:
            self._unregister(entry)


def _with_news(task: Task) -> Waiting:
    return task.send(True)


def _without_news(task: Task) -> Waiting:
    return task.send(False)


def _stopped(task: Task) -> Waiting:
    return task.throw(Stopped())
