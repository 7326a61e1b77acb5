"""Signed lines between a job's supervisors: JSON, each with a proof that its sender has the job's key.

The coordinator greets with a challenge, the member with a nonce; both make the session. A proof covers the session, the
direction, the line's number and its words, so no line can be made up, changed, repeated or sent back.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from typing import Any

LONGEST_LINE = 1 << 20
LONGEST_GREETING = 256
"""The most that is read from a peer without proof: 32 digits in quotes, with some to spare."""


class NotTrusted(Exception):
    """A line whose proof is wrong."""


class Channel:
    """One side of a connection; `settimeout` of the socket bounds each call. Raises OSError, EOFError, NotTrusted."""

    def __init__(self, connection: socket.socket, key: bytes, *, is_coordinator: bool) -> None:
        self._file = connection.makefile("rwb")
        self._key = key
        self._ways = ("down", "up") if is_coordinator else ("up", "down")
        self._sent = self._heard = 0
        own = secrets.token_hex(16)
        self._write(own)
        other = self._read(LONGEST_GREETING)
        if not isinstance(other, str):
            raise NotTrusted("not a greeting")
        self._session = own + other if is_coordinator else other + own

    def send(self, words: dict[str, Any]) -> None:
        """Sends one line."""
        self._sent += 1
        text = json.dumps(words)
        self._write([text, self._proof(self._ways[0], self._sent, text)])

    def hear(self) -> dict[str, Any]:
        """The next line's words."""
        line = self._read(LONGEST_LINE)
        self._heard += 1
        try:
            text, proof = line
            if not isinstance(text, str):
                raise NotTrusted("not a signed line")
            is_right = hmac.compare_digest(self._proof(self._ways[1], self._heard, text), proof)
        except (TypeError, ValueError) as e:
            raise NotTrusted("not a signed line") from e
        if not is_right:
            raise NotTrusted("the proof is wrong")
        words = _parsed(text)
        return words if isinstance(words, dict) else {}

    def close(self) -> None:
        """Closes this side's file of the connection."""
        try:
            self._file.close()
        except OSError:
            pass  # what was not sent yet cannot be any more

    def _proof(self, way: str, number: int, text: str) -> str:
        return hmac.new(self._key, json.dumps([self._session, way, number, text]).encode(), "sha256").hexdigest()

    def _write(self, value: object) -> None:
        self._file.write(json.dumps(value).encode() + b"\n")
        self._file.flush()

    def _read(self, longest_bytes: int) -> Any:
        line = self._file.readline(longest_bytes)
        if not line.endswith(b"\n"):
            raise EOFError("the other side hung up")
        return _parsed(line)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise NotTrusted("not JSON, or of too many levels") from e
