"""An answer, or an error when it does not come in time: for what has no deadline of its own.

boto3's calls have theirs; the program that gives a person's credentials (`credential_process`) has none.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from clusterctl_infra.errors import CloudError

T = TypeVar("T")
NO_ANSWER = "NoAnswer"
"""The code of what did not answer in time."""


def in_time(ask: Callable[[], T], *, timeout_s: float, doing: str) -> T:
    """What `ask` gives or raises, in a thread that no exit waits for. Raises CloudError when the time is over."""
    said: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()
    threading.Thread(target=_answer, args=(ask, said), daemon=True, name=doing).start()
    try:
        answer = said.get(timeout=timeout_s)
    except queue.Empty:
        raise CloudError(f"{doing}: no answer in {timeout_s:.0f} s", code=NO_ANSWER) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]


def _answer(ask: Callable[[], T], said: queue.SimpleQueue[tuple[T] | BaseException]) -> None:
    try:
        said.put((ask(),))
    except BaseException as e:  # noqa: BLE001  # it is raised again where it was asked
        said.put(e)
