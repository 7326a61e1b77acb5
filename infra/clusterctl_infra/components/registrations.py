"""How the SDK waits for a program's resources: each registration in turn, not all outputs at once, again and again."""

from __future__ import annotations

import asyncio

from pulumi.runtime.settings import SETTINGS


def wait_in_turn() -> None:
    """To be called while resources are made: a program's time then grows with its resources, not with their square.

    The SDK looks for registrations when the program's last line is done, before any of them has begun, finds none, and
    waits for the outputs instead: a hundred for each resource, all of them anew whenever one is there
    (`wait_for_rpcs` in pulumi/runtime/stack.py, SDK 3.250). One that is under way makes it begin with those.
    """
    SETTINGS.rpc_manager.rpcs.append(asyncio.ensure_future(asyncio.sleep(0)))
