"""An event loop on a thread of its own that is given its tasks while it runs."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator

from clusterctl.ssh.fanout.event_loop import EventLoop, Task, Waiting
from clusterctl.ssh.fanout.libssh2 import load

LAST_STEPS_S = 2.0
"""How long `stop` waits for connections to be closed; what is left of them ends with this process."""


class RunningLoop:
    """Runs the tasks that any thread gives it, from its creation until `stop`."""

    def __init__(self, name: str) -> None:
        load()  # before there is a thread
        self._given = _GivenTasks()
        self._given.put(_until_stopped())
        self._loop = EventLoop(self._given, width=sys.maxsize)
        self._thread = threading.Thread(target=self._loop.run, daemon=True, name=name)
        self._thread.start()

    def begin(self, task: Task) -> None:
        """Has the loop run the task, too. What the task raises ends the whole loop, so it has to catch its errors."""
        self._given.put(task)
        self._loop.look()

    def wake(self) -> None:
        """Wakes the tasks that wait to be woken."""
        self._loop.wake()

    def stop(self) -> None:
        """Raises Stopped in every task, and returns when they have ended, or soon."""
        self._loop.stop()
        self._thread.join(LAST_STEPS_S)


class _GivenTasks(Iterator[Task]):
    """What has been given and not begun; unlike other iterators, it may have more after its end."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()

    def put(self, task: Task) -> None:
        self._tasks.put(task)

    def __next__(self) -> Task:
        try:
            return self._tasks.get_nowait()
        except queue.Empty:
            raise StopIteration from None


def _until_stopped() -> Task:
    """Keeps the loop running while it has nothing else to do."""
    while True:
        yield Waiting(for_waking=True)
