"""A name server for the tasks of a workflow on this node: it answers nodes' names, and passes all else on.

Programs that ask a name server themselves (nslookup, dig, musl's resolver) do not read /etc/hosts, in which the nodes
are. It listens on an address of the loopback network alone, as the user nobody, and stores no answers.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import socket
from pathlib import Path
from typing import Dict, List, Optional, Protocol, Sequence, Tuple

from clusterctl.on_node.job import dns_message
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.resolv_conf import Resolvers, read_resolvers
from clusterctl.on_node.job.this_process import end_with_parent, give_up_privileges

PORT = 53
ADDRESSES = tuple("127.83.0.%d" % number for number in range(1, 255))
"""An address for each task on the node; all of 127.0.0.0/8 is loopback, and nothing else on a node uses these."""
NOBODY = 65534
MOST_AT_ONCE, MOST_CONNECTIONS, MOST_FILES = 64, 16, 256
PATIENCE_S, CONNECTION_S = 3.0, 30.0
MOST_HOSTS_BYTES = 1024 * 1024
Names = Dict[str, List[str]]


def read_hosts(text: str) -> Names:
    """Name → its addresses in a hosts file, those of the loopback network left out."""
    found: Names = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        try:
            is_loopback = ipaddress.ip_address(address).is_loopback
        except ValueError:
            continue
        if not is_loopback:
            for name in names:
                found.setdefault(name.lower().rstrip("."), []).append(address)
    return found


def addresses_of(name: str, names: Names, domains: Sequence[str]) -> Optional[List[str]]:
    """A node's addresses, also for its name with one of the resolver's domains behind it; None for other names."""
    if name in names:
        return names[name]
    short, _, domain = name.partition(".")
    return names.get(short) if domain and domain in domains else None


class Answers(Protocol):
    """Answers one packet with one; None for what is no question."""

    async def answer(self, packet: bytes, *, is_stream: bool) -> Optional[bytes]: ...


class NameServer:
    """Answers what is asked for a node's name, and asks the node's own servers for others."""

    def __init__(self, hosts: Path, resolvers: Resolvers, port: int = PORT) -> None:
        self._hosts = hosts
        self._resolvers = resolvers
        self._port = port
        self._at_once = 0

    async def answer(self, packet: bytes, *, is_stream: bool) -> Optional[bytes]:
        """The answer; None if the packet is not a question."""
        try:
            question = dns_message.read_question(packet)
        except ValueError:
            return None
        found = addresses_of(question.name, self._names(), self._resolvers.domains) if question.is_internet else None
        if found is not None:
            return dns_message.answered(question, found)
        if self._at_once >= MOST_AT_ONCE:
            return dns_message.failed(question)
        self._at_once += 1
        try:
            return await self._passed_on(packet, is_stream=is_stream) or dns_message.failed(question)
        finally:
            self._at_once -= 1

    async def _passed_on(self, packet: bytes, *, is_stream: bool) -> Optional[bytes]:
        ask = ask_by_stream if is_stream else ask_by_packet
        for server in self._resolvers.servers:
            try:
                reply = await asyncio.wait_for(ask(server, self._port, packet), PATIENCE_S)
            except (OSError, EOFError, asyncio.TimeoutError):
                continue
            if reply[:2] == packet[:2]:
                return reply
        return None

    def _names(self) -> Names:
        """The addresses by name as they are now, also of a node that was replaced."""
        try:
            with self._hosts.open(errors="replace") as stream:
                return read_hosts(stream.read(MOST_HOSTS_BYTES))
        except OSError:
            return {}


class _Answer(asyncio.DatagramProtocol):
    """Waits for a name server's reply to one packet."""

    def __init__(self) -> None:
        self.reply: "asyncio.Future[bytes]" = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Takes the first packet that comes; the kernel lets only the server's through."""
        if not self.reply.done():
            self.reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        """Passes the error on: mostly, nobody listens there."""
        if not self.reply.done():
            self.reply.set_exception(exc)


async def ask_by_packet(server: str, port: int, packet: bytes) -> bytes:
    """The server's reply. Raises OSError."""
    transport, answer = await asyncio.get_running_loop().create_datagram_endpoint(_Answer, remote_addr=(server, port))
    try:
        transport.sendto(packet)
        return await answer.reply
    finally:
        transport.close()


async def ask_by_stream(server: str, port: int, packet: bytes) -> bytes:
    """The server's reply over TCP, for answers that do not fit into a packet. Raises OSError, EOFError."""
    reader, writer = await asyncio.open_connection(server, port)
    try:
        writer.write(len(packet).to_bytes(2, "big") + packet)
        return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    finally:
        writer.close()


class _Packets(asyncio.DatagramProtocol):
    """Questions that come as packets."""

    def __init__(self, server: Answers) -> None:
        self._server = server
        self._tasks: "set[asyncio.Task[None]]" = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport, for the answers."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Sends the answer when it is there; drops the packet if too many wait for theirs."""
        if len(self._tasks) < 2 * MOST_AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._answer(data, addr))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, data: bytes, address: object) -> None:
        reply = await self._server.answer(data, is_stream=False)
        if reply is not None:
            self._transport.sendto(reply, address)  # type: ignore[attr-defined]  # asyncio gives a DatagramTransport


async def serve(server: Answers, packets: socket.socket, streams: socket.socket) -> None:
    """Answers packets and streams for ever."""
    open_now = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            if open_now <= MOST_CONNECTIONS:
                await asyncio.wait_for(_talk(server, reader, writer), CONNECTION_S)
        except (OSError, EOFError, asyncio.TimeoutError):
            pass  # it has gone, or has nothing more to ask
        finally:
            open_now -= 1
            writer.close()

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Packets(server), sock=packets)
    try:
        listening = await asyncio.start_server(talk, sock=streams)
        await listening.serve_forever()
    finally:
        transport.close()


async def _talk(server: Answers, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        length = int.from_bytes(await reader.readexactly(2), "big")
        if length > dns_message.MOST_BYTES:
            return
        reply = await server.answer(await reader.readexactly(length), is_stream=True)
        if reply is None:
            return
        writer.write(len(reply).to_bytes(2, "big") + reply)
        await writer.drain()


def bound(addresses: Sequence[str] = ADDRESSES, port: int = PORT) -> Tuple[str, socket.socket, socket.socket]:
    """The first address that is free, and its two sockets. Raises OSError where none is."""
    for address in addresses:
        packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        streams = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            packets.bind((address, port))
            streams.bind((address, port))
            return address, packets, streams
        except OSError as e:
            packets.close()
            streams.close()
            if e.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no address of the loopback network is free")


def answer_serve_names(_words: Sequence[str]) -> int:
    """The verb: serves names until its parent ends."""
    serve_names(Layout().root)
    return 0


def serve_names(root: Path) -> None:
    """Answers for ever, once it has printed its address. Raises OSError."""
    address, packets, streams = bound()
    resolvers = read_resolvers((root / "etc/resolv.conf").read_text(errors="replace"))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    give_up_privileges()
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    print(address, flush=True)
    os.close(1)
    asyncio.run(serve(NameServer(root / "etc/hosts", resolvers), packets, streams))
