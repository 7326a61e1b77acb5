"""Datagrams between nodes that prove the cluster's secret."""

import contextlib
import hmac
import json
import socket
from typing import Any, Dict, Iterator, Optional, Tuple

from clusterctl_bootstrap.node.received import is_text, is_whole, parsed

BEATS = 8192
"""The most that are read at one look."""
LONGEST_BYTES = 512
"""The longest beat that is accepted; a real one has about 200."""
LONGEST_WORD = 64
MOST_SLOTS = 65536
SO_RCVBUFFORCE = 33
"""socket(7); Python has no name for it."""
BUFFER_BYTES = 4 << 20
"""The buffer for what comes between two looks. Linux's default holds fewer than 300 beats."""


def opened_door(place: Tuple[str, int]) -> socket.socket:
    """A socket for datagrams. Raises OSError if another program has the place."""
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.setblocking(False)
    with contextlib.suppress(OSError):  # only root may have more than the system's own limit
        door.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    try:
        door.bind(place)
    except OSError:
        door.close()
        raise
    return door


def sealed(secret: bytes, words: Dict[str, Any]) -> bytes:
    """The words with a proof of the secret."""
    return json.dumps([words, _proof(secret, words)]).encode()


def opened(secret: bytes, data: bytes) -> Optional[Dict[str, Any]]:
    """The words whose proof is right; None for anything else."""
    try:
        words, proof = parsed(data, LONGEST_BYTES, 2)
        is_proven = isinstance(words, dict) and hmac.compare_digest(_proof(secret, words), proof)
    except (ValueError, TypeError):
        return None
    return words if is_proven and _is_beat(words) else None


def _is_beat(words: Dict[str, Any]) -> bool:
    """Whether each word of a beat, or of an answer, is there and valid."""
    texts = (words.get("id"), words.get("own"), words.get("theirs"))
    is_answer = "alone" in words
    return (
        all(is_text(word, LONGEST_WORD) for word in texts)
        and is_whole(words.get("slot"), 0, MOST_SLOTS)
        and (not is_answer or isinstance(words["alone"], bool))
    )


def _proof(secret: bytes, words: Dict[str, Any]) -> str:
    """The proof of these words, after a first word that no proof of the start barrier covers."""
    return hmac.new(secret, json.dumps(["beat", words], sort_keys=True).encode(), "sha256").hexdigest()


def received(door: socket.socket, secret: bytes, cluster_id: str) -> Iterator[Tuple[Dict[str, Any], Tuple[str, int]]]:
    """What nodes of this cluster have said since the last look, and from where."""
    for _ in range(BEATS):
        try:
            data, sender = door.recvfrom(LONGEST_BYTES + 1)
        except BlockingIOError:
            return
        words = opened(secret, data)
        if words is not None and words["id"] == cluster_id:
            yield words, sender
