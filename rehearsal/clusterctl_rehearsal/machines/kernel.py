"""System calls that Python 3.11 does not offer, each raising OSError as the os module does."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def set_namespace(descriptor: int, kind: int) -> None:
    """Move the calling thread into the namespace behind an open file."""
    _check(_libc.setns(descriptor, kind), "setns")


def unshare(kinds: int) -> None:
    """Give the calling process new namespaces of these kinds (CLONE_NEW… flags)."""
    _check(_libc.unshare(kinds), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """Mount as mount(2) does."""
    result = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _check(result, target)


def unmount(target: str, flags: int = 0) -> None:
    """Unmount as umount2(2) does."""
    _check(_libc.umount2(target.encode(), flags), target)


def inside_network(namespace_path: str, action: Callable[[], T]) -> T:
    """What `action` returns when run on a thread inside a network namespace.

    A socket keeps the namespace it was made in, so `action` may hand one back.
    Raises what opening the namespace or `action` raised.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            descriptor = os.open(namespace_path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                set_namespace(descriptor, CLONE_NEWNET)
            finally:
                os.close(descriptor)
            results.append(action())
        except BaseException as error:  # noqa: BLE001 - handed to the calling thread
            errors.append(error)

    thread = threading.Thread(target=run, name="inside-network")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _check(result: int, subject: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)
