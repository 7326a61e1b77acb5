"""Datagrams between nodes that prove the cluster's secret."""

import hmac
import json
import socket
from typing import Any, Dict, Iterator, Optional, Tuple

LINES = 4096
"""Read at one look at most."""


def opened_door(place: Tuple[str, int]) -> socket.socket:
    """A socket for datagrams. Raises OSError where the place is another's."""
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.setblocking(False)
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
        words, proof = json.loads(data)
        is_proven = isinstance(words, dict) and hmac.compare_digest(_proof(secret, words), proof)
    except (ValueError, TypeError):
        return None
    return words if is_proven else None


def _proof(secret: bytes, words: Dict[str, Any]) -> str:
    """Begins with a word that no proof of the start barrier begins with."""
    return hmac.new(secret, json.dumps(["beat", words], sort_keys=True).encode(), "sha256").hexdigest()


def heard(door: socket.socket, secret: bytes, cluster_id: str) -> Iterator[Tuple[Dict[str, Any], Tuple[str, int]]]:
    """What nodes of this cluster have said since the last look, and from where."""
    for _ in range(LINES):
        try:
            data, sender = door.recvfrom(2048)
        except BlockingIOError:
            return
        said = opened(secret, data)
        if said is not None and said.get("id") == cluster_id:
            yield said, sender
