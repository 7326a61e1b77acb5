"""The name server of a workflow's tasks on real sockets: nodes' names, others asked on, strangers' packets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from clusterctl.on_node.job.name_server import (
    MOST_AT_ONCE,
    MOST_FILES,
    NOBODY,
    PORT,
    NameServer,
    ask_by_packet,
    ask_by_stream,
    bound,
    serve,
)
from clusterctl.on_node.job.resolv_conf import Resolvers

OWN, OTHERS = "127.83.1.1", "127.83.1.2"
WITHIN_S = 20.0
SERVE = """
import pathlib, sys
from clusterctl.on_node.job.name_server import serve_names
serve_names(pathlib.Path(sys.argv[1]))
"""
NO_CAPABILITY = "0" * 16


def asked(name: str, number: int = 7) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


class Upstream(asyncio.DatagramProtocol):
    """A name server that sends back what it was asked, with a mark; silent where the name says so."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        if b"silent" not in data:
            self.transport.sendto(data + b"packet", addr)  # type: ignore[attr-defined]  # asyncio gives a DatagramTransport here


async def answer_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    length = int.from_bytes(await reader.readexactly(2), "big")
    answer = await reader.readexactly(length) + b"stream"
    writer.write(len(answer).to_bytes(2, "big") + answer)
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


def test_a_server_that_root_starts_keeps_its_port_and_none_of_root_s_rights(hosts_of_node: Path) -> None:
    assert os.geteuid() == 0, "needs root for a port below 1024, and for rights that can be given up"
    argv = [sys.executable, "-c", SERVE, str(hosts_of_node)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, extra_groups=[1, 4]) as server:
        try:
            assert server.stdout is not None, "it is a pipe"
            address = server.stdout.readline().decode().strip()
            rights = dict(line.split(":\t") for line in proc_lines(server.pid, "status"))
            (open_files,) = (line for line in proc_lines(server.pid, "limits") if line.startswith("Max open files"))
            answer = asyncio.run(asyncio.wait_for(ask_by_packet(address, PORT, asked("train-1")), WITHIN_S))
        finally:
            server.kill()
    assert answer.endswith(bytes([10, 0, 8, 1]))
    # The real user, the effective one, the saved one, and that of the file system.
    assert rights["Uid"].split() == [str(NOBODY)] * 4
    assert rights["Gid"].split() == [str(NOBODY)] * 4
    assert rights["Groups"].split() == []
    assert {rights[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {NO_CAPABILITY}
    assert rights["NoNewPrivs"] == "1"
    assert open_files.split()[3:5] == [str(MOST_FILES)] * 2


@pytest.fixture
def hosts_of_node() -> Iterator[Path]:
    """A root folder with /etc/hosts and /etc/resolv.conf that every user can read; a `tmp_path` is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "etc").mkdir(mode=0o755)
        (root / "etc/resolv.conf").write_text(f"nameserver {OTHERS}\n")
        (root / "etc/hosts").write_text("10.0.8.1 train-1\n")
        yield root


def proc_lines(pid: int, name: str) -> list[str]:
    return Path(f"/proc/{pid}/{name}").read_text().splitlines()
