"""DNS messages, as far as answering the names of nodes needs them (RFC 1035, sections 4.1 and 4.2.2). Pure."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Sequence

HEADER = struct.Struct(">6H")
QUESTION_END = struct.Struct(">2H")
RECORD = struct.Struct(">3HIH")
ADDRESS, ADDRESS_6, ANY_KIND, INTERNET = 1, 28, 255, 1
IPV4_BYTES = 4
RESPONSE, AUTHORITATIVE, RECURSION_WANTED, RECURSION_THERE = 0x8000, 0x0400, 0x0100, 0x0080
OPERATION = 0x7800
SERVER_FAILED = 2
POINTER_TO_QUESTION = 0xC000 | HEADER.size
MOST_LABEL, MOST_NAME = 63, 255
MOST_BYTES = 4096
"""The most that a question may have: it holds one name."""
TTL_S = 5


@dataclass(frozen=True)
class Question:
    """One question to the name server."""

    id: int
    flags: int
    name: str
    """The name in small letters, without a dot at its end."""
    kind: int
    is_internet: bool
    section: bytes
    """The question as it was written; an answer repeats it."""


def read_question(packet: bytes) -> Question:
    """The only question of a standard query. Raises ValueError for anything else."""
    if not HEADER.size < len(packet) <= MOST_BYTES:
        raise ValueError("%d bytes" % len(packet))
    number, flags, questions, answers, _, _ = HEADER.unpack_from(packet)
    if flags & (RESPONSE | OPERATION) or questions != 1 or answers:
        raise ValueError("no standard query")
    labels = []
    at = HEADER.size
    while True:
        length = packet[at] if at < len(packet) else MOST_LABEL + 1
        if length > MOST_LABEL or at + length >= len(packet) or at - HEADER.size > MOST_NAME:
            raise ValueError("no name")
        at += 1
        if length == 0:
            break
        labels.append(packet[at : at + length].decode("latin-1").lower())
        at += length
    if at + QUESTION_END.size > len(packet):
        raise ValueError("cut off")
    kind, network = QUESTION_END.unpack_from(packet, at)
    return Question(
        id=number,
        flags=flags,
        name=".".join(labels),
        kind=kind,
        is_internet=network == INTERNET,
        section=packet[HEADER.size : at + QUESTION_END.size],
    )


def answered(question: Question, addresses: Sequence[str]) -> bytes:
    """The answer with the name's addresses of the kind that is asked for, of which there may be none."""
    every = [_record(address) for address in addresses]
    rows = [row for kind, row in every if question.kind in (kind, ANY_KIND)]
    return _head(question, AUTHORITATIVE, len(rows)) + question.section + b"".join(rows)


def failed(question: Question) -> bytes:
    """The answer that the server has failed (SERVFAIL)."""
    return _head(question, SERVER_FAILED, 0) + question.section


def _record(address: str) -> tuple[int, bytes]:
    """The kind of an address, and the row of an answer with it."""
    packed = ipaddress.ip_address(address).packed
    kind = ADDRESS if len(packed) == IPV4_BYTES else ADDRESS_6
    return kind, RECORD.pack(POINTER_TO_QUESTION, kind, INTERNET, TTL_S, len(packed)) + packed


def _head(question: Question, flags: int, answers: int) -> bytes:
    kept = question.flags & RECURSION_WANTED
    return HEADER.pack(question.id, RESPONSE | RECURSION_THERE | kept | flags, 1, answers, 0, 0)
