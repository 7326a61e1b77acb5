from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "text/xml"


class Api:
    def __init__(self, *, region: Any, before: Callable[[], None]) -> None:
        pass

    def warm_up(self) -> None:
        pass

    def answer(self, headers: Mapping[str, str], body: bytes) -> Reply:
        return Reply(status=400, body=b"")
