"""The name server of a workflow's tasks on real sockets: nodes' names, others asked on, strangers' packets."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path

from clusterctl.on_node.job.name_server import (
    MOST_AT_ONCE,
    NameServer,
    ask_by_packet,
    ask_by_stream,
    bound,
    serve,
)
from clusterctl.on_node.job.resolv_conf import Resolvers

OWN, OTHERS = "127.83.1.1", "127.83.1.2"
WITHIN_S = 20.0


def asked(name: str, number: int = 7) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


class Upstream(asyncio.DatagramProtocol):
    """A name server that says back what it was asked, with a mark; silent where the name says so."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        if b"silent" not in data:
            self.transport.sendto(data + b"packet", addr)  # type: ignore[attr-defined]  # asyncio gives a DatagramTransport here


async def answer_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    length = int.from_bytes(await reader.readexactly(2), "big")
    said = await reader.readexactly(length) + b"stream"
    writer.write(len(said).to_bytes(2, "big") + said)
    await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[int]:
    """The port of a server whose upstream is another loopback address at the same port."""
    (folder / "hosts").write_text("127.0.0.1 localhost\n10.0.8.1 train-1\n")
    upstream, _ = await asyncio.get_running_loop().create_datagram_endpoint(Upstream, local_addr=(OTHERS, 0))
    port = upstream.get_extra_info("sockname")[1]
    streams = await asyncio.start_server(answer_stream, OTHERS, port)
    _, packets, own_streams = bound([OWN], port)
    server = NameServer(folder / "hosts", Resolvers((OTHERS,), ()), port)
    served = asyncio.create_task(serve(server, packets, own_streams))
    try:
        yield port
    finally:
        served.cancel()
        await asyncio.gather(served, return_exceptions=True)
        streams.close()
        await streams.wait_closed()
        upstream.close()
        await asyncio.sleep(0)  # transports close in the loop's next round


def test_names_of_nodes_are_answered_and_others_are_asked_on_by_packets_and_streams(tmp_path: Path) -> None:
    async def look() -> None:
        async with serving(tmp_path) as port:
            for ask, mark in ((ask_by_packet, b"packet"), (ask_by_stream, b"stream")):
                known = await asyncio.wait_for(ask(OWN, port, asked("train-1")), WITHIN_S)
                assert known.endswith(bytes([10, 0, 8, 1]))
                other = await asyncio.wait_for(ask(OWN, port, asked("example.com")), WITHIN_S)
                assert other == asked("example.com") + mark
            (tmp_path / "hosts").write_text("10.0.8.9 train-1\n")
            assert (await ask_by_packet(OWN, port, asked("train-1"))).endswith(bytes([10, 0, 8, 9]))

    asyncio.run(look())


def test_nonsense_is_not_answered_and_a_flood_does_not_keep_nodes_names_from_being_answered(tmp_path: Path) -> None:
    async def look() -> None:
        async with serving(tmp_path) as port:
            asking = [
                asyncio.create_task(ask_by_packet(OWN, port, asked("silent.example", number)))
                for number in range(MOST_AT_ONCE + 8)
            ]
            nonsense = asyncio.create_task(ask_by_packet(OWN, port, b"nonsense"))
            done, _ = await asyncio.wait(asking, timeout=WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            assert done, "what is too much is refused at once"
            known = await asyncio.wait_for(ask_by_packet(OWN, port, asked("train-1")), WITHIN_S)
            assert known.endswith(bytes([10, 0, 8, 1]))
            assert not nonsense.done()
            for each in (*asking, nonsense):
                each.cancel()
            await asyncio.gather(*asking, nonsense, return_exceptions=True)

    asyncio.run(look())
