"""Makes the SDK wait for resources one registration after the other, instead of for all outputs again and again."""

from __future__ import annotations

import asyncio

from pulumi.runtime.settings import SETTINGS


def wait_in_turn() -> None:
    """Call it while resources are made: a program's time then grows with its resources, not with their square.

    The SDK looks for registrations when the program's last line is done, before any of them has begun, finds none, and
    waits for the outputs instead: a hundred for each resource, and for all of them again whenever one arrives
    (`wait_for_rpcs` in pulumi/runtime/stack.py, SDK 3.250). The registration added here makes it wait for those first.
    """
    SETTINGS.rpc_manager.rpcs.append(asyncio.ensure_future(asyncio.sleep(0)))
