"""The name server of a workflow's tasks over TCP and UDP, with connections that are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any  # what asyncio gives for a connection

import pytest
from clusterctl.on_node.job import dns_message, name_server
from clusterctl.on_node.job.name_server import MOST_AT_ONCE, _Packets, _talk, ask_by_stream


class Writer:
    """The sending half of a connection."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        """Nothing waits: `write` has sent everything."""

    def close(self) -> None:
        self.is_closed = True


class Server:
    """Notes each question and how it came; answers `<question>`, and nothing to an empty one."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, bool]] = []

    async def answer(self, packet: bytes, *, is_stream: bool) -> bytes | None:
        self.asked.append((packet, is_stream))
        return b"<" + packet + b">" if packet else None


def reading(content: bytes) -> asyncio.StreamReader:
    """A stream that ends after this content."""
    reader = asyncio.StreamReader()
    reader.feed_data(content)
    reader.feed_eof()
    return reader


def framed(packet: bytes) -> bytes:
    return len(packet).to_bytes(2, "big") + packet


def talked(content: bytes) -> tuple[list[tuple[bytes, bool]], bytes]:
    """The questions that the server is asked when a connection brings this, and what is sent back."""
    server, writer = Server(), Writer()

    async def talk() -> None:
        fake: Any = writer
        try:
            await _talk(server, reading(content), fake)
        except asyncio.IncompleteReadError:
            pass  # as `serve` takes it: it has nothing more to ask

    asyncio.run(talk())
    return server.asked, writer.sent


def test_questions_of_one_connection_are_answered_one_after_the_other() -> None:
    long = b"a" * 300
    assert talked(framed(b"one") + framed(long)) == (
        [(b"one", True), (long, True)],
        framed(b"<one>") + framed(b"<" + long + b">"),
    )


def test_a_connection_ends_with_what_is_no_question_or_longer_than_one_may_be() -> None:
    assert talked(framed(b"") + framed(b"one")) == ([(b"", True)], b"")
    longest = b"a" * dns_message.MOST_BYTES
    assert talked(framed(longest))[0] == [(longest, True)]
    assert talked(framed(longest + b"a") + framed(b"one")) == ([], b"")


def asked_elsewhere(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> tuple[bytes, Writer, Callable[[], bytes]]:
    """The packet to send, the connection's sending half, and a function that asks over the connection."""
    packet, writer = b"q" * 300, Writer()

    async def opened(host: str, port: int) -> tuple[asyncio.StreamReader, Writer]:
        assert (host, port) == ("10.0.0.2", 53)
        return reading(answer), writer

    monkeypatch.setattr(name_server.asyncio, "open_connection", opened)  # type: ignore[attr-defined]  # the module's own
    return packet, writer, lambda: asyncio.run(ask_by_stream("10.0.0.2", 53, packet))


def test_a_long_answer_comes_whole_and_its_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    packet, writer, ask = asked_elsewhere(monkeypatch, framed(b"a" * 5000) + b"more")
    assert ask() == b"a" * 5000
    assert (writer.sent, writer.is_closed) == (framed(packet), True)


@pytest.mark.parametrize("answer", [b"", b"\0", framed(b"abc")[:-1]])
def test_half_an_answer_is_none_and_its_connection_is_closed(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    _, writer, ask = asked_elsewhere(monkeypatch, answer)
    with pytest.raises(EOFError):
        ask()
    assert writer.is_closed, "otherwise the server would run out of files and answer nobody"


class Transport:
    """Where answers to packets go."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, object]] = []

    def sendto(self, data: bytes, address: object) -> None:
        self.sent.append((data, address))


def test_a_packet_is_answered_to_who_sent_it_and_too_many_at_a_time_are_dropped() -> None:
    server, transport = Server(), Transport()

    async def received() -> None:
        packets, fake = _Packets(server), transport
        made: Any = fake
        packets.connection_made(made)
        packets.datagram_received(b"", "nobody")
        packets.datagram_received(b"one", "ada")
        for number in range(3 * MOST_AT_ONCE):
            packets.datagram_received(b"many", number)
        for _ in range(3):
            await asyncio.sleep(0)
        packets.datagram_received(b"last", "bob")
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(received())
    assert transport.sent[0] == (b"<one>", "ada")
    assert transport.sent[-1] == (b"<last>", "bob")
    assert len(transport.sent) == 2 * MOST_AT_ONCE
    assert {is_stream for _, is_stream in server.asked} == {False}
