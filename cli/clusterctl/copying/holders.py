"""Who has the whole file, and gives it to whom next: the tree of a copy grows by this, one new holder at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable
from pathlib import Path

from clusterctl.copying.place import NodeFile

TRIES = 2
"""So many nodes may fail to give it before this computer does: then it is not they who are broken."""
FROM_HERE = 8
"""Nodes that get it from here at a time, once there is no other way."""


class Holders:
    """Every holder gives to one node at a time, who waited longest first; this computer only where no node can.

    So the number of holders doubles from turn to turn, and one that is lost takes nobody with it: whom it would have
    given to asks the next.
    """

    def __init__(self, here: Path | None, nodes: Iterable[NodeFile] = ()) -> None:
        self._here = here
        self._from_here = 0
        self._free = deque(nodes)
        self._giving: set[int] = set()
        self._changed = threading.Condition()

    def take(self, tried: Collection[int]) -> Path | NodeFile | None:
        """Who gives now; waits for one. `tried`: slots that failed to. None: nobody is left that has it."""
        with self._changed:
            while True:
                if self._is_turn_of_here(tried):
                    self._from_here += 1
                    return self._here
                if (found := next((one for one in self._free if one.node.slot not in tried), None)) is not None:
                    self._free.remove(found)
                    self._giving.add(found.node.slot)
                    return found
                if not self._giving and not self._from_here and self._here is None:
                    return None
                self._changed.wait()

    def has_given(self, source: Path | NodeFile, *, is_lost: bool = False) -> None:
        """It is free for the next; one that is lost gives no more."""
        with self._changed:
            if isinstance(source, Path):
                self._from_here -= 1
            else:
                self._giving.discard(source.node.slot)
                if not is_lost:
                    self._free.append(source)
            self._changed.notify_all()

    def add(self, holder: NodeFile) -> None:
        """One more node has it."""
        with self._changed:
            known = self._giving | {one.node.slot for one in self._free}
            if holder.node.slot not in known:
                self._free.append(holder)
            self._changed.notify_all()

    def _is_turn_of_here(self, tried: Collection[int]) -> bool:
        if self._here is None:
            return False
        if len(tried) >= TRIES:
            return self._from_here < FROM_HERE
        is_anybody = bool(self._giving) or any(one.node.slot not in tried for one in self._free)
        return not is_anybody and self._from_here == 0
