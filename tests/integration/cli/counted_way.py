"""A way to a server that counts round trips, and lets only so many pass.

Counted by cause, not by the clock: what the client sends after it has got an answer belongs to the next round trip,
and what the server sends belongs to the one whose request had reached it. Every piece takes a moment on its way, so
that what is sent in one go is not taken for a reaction to what has just arrived.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ON_THE_WAY_S = 0.03


class CountedWay:
    """Forwards connections from one address to another."""

    def __init__(self, here: str, there: str, port: int) -> None:
        self._here, self._there, self._port = here, there, port
        self._trip = 0
        self._at_server = 0
        self._at_client = 0
        self._most = 0
        self._held: list[tuple[asyncio.StreamWriter, bytes]] = []
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._is_over: asyncio.Event

    def allow(self, round_trips: int) -> None:
        """From now on so many pass, and the rest is held; what is on its way or held already counts for none."""
        asyncio.run_coroutine_threadsafe(self._allow(round_trips), self._loop).result(10)

    @contextmanager
    def open(self) -> Iterator[CountedWay]:
        """The way, until the end of the block."""
        thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        thread.start()
        assert self._is_ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._is_over.set)
            thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._connected, self._here, self._port):
            self._is_ready.set()
            await self._is_over.wait()

    async def _allow(self, round_trips: int) -> None:
        self._trip += 1
        self._at_server = self._at_client = 0
        self._most = round_trips
        for server, data in self._held:
            server.write(data)
        self._held.clear()

    async def _connected(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._there, self._port)
        there = self._carry(
            from_client, lambda: self._at_client + 1, lambda data, number: self._forward(to_server, data, number)
        )
        back = self._carry(
            from_server, lambda: self._at_server, lambda data, number: self._answer(to_client, data, number)
        )
        try:
            await asyncio.gather(there, back)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            to_client.close()
            to_server.close()

    async def _carry(
        self, source: asyncio.StreamReader, number_now: Callable[[], int], arrive: Callable[[bytes, int], None]
    ) -> None:
        while data := await source.read(65536):
            self._loop.call_later(ON_THE_WAY_S, self._arrived, arrive, data, number_now(), self._trip)

    def _arrived(self, arrive: Callable[[bytes, int], None], data: bytes, number: int, trip: int) -> None:
        arrive(data, number if trip == self._trip else 0)

    def _forward(self, server: asyncio.StreamWriter, data: bytes, number: int) -> None:
        if number > self._most:
            self._held.append((server, data))
            return
        self._at_server = max(self._at_server, number)
        server.write(data)

    def _answer(self, client: asyncio.StreamWriter, data: bytes, number: int) -> None:
        self._at_client = max(self._at_client, number)
        client.write(data)
