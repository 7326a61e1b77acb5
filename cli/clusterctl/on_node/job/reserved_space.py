"""Space on the disk for a job's last words, taken before the job can fill it."""

from __future__ import annotations

import ctypes

KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE of fallocate(2): readers see the file no longer than what is written in it."""


def reserve_space(file: int, length: int) -> None:
    """Takes the blocks of the first `length` bytes of an open file, so that writing them needs none.

    Does nothing where the file system cannot (NFS before 4.2) or has no space left.
    """
    try:
        ctypes.CDLL(None).fallocate(file, KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(length))
    except AttributeError:
        return  # a container's C library without it
