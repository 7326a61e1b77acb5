"""Pages of the metadata service, asked again and again: one token for as long as it holds, and AWS's time with each."""

import http.client
import time
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Dict, NamedTuple, Optional, Tuple

HOST = "169.254.169.254"
QUESTION_S = 2.0
TOKEN_S = 21600
"""The longest lifetime of a token that the metadata service accepts."""


class Page(NamedTuple):
    """What the metadata service answered; `text` is None if there is no such page."""

    text: Optional[str]
    at_s: float
    """AWS's time, in seconds since 1970."""


class MetadataService:
    """The metadata service of version 2, with one token for as long as it holds."""

    def __init__(self, host: str = HOST, port: int = 80) -> None:
        self.place = (host, port)
        self.token = ""

    def page(self, name: str) -> Page:
        """A page under `/latest/meta-data/`. Raises OSError."""
        status, page = self._with_token(name)
        if status == 401:  # it does not hold any more
            self.token = ""
            status, page = self._with_token(name)
        if status not in (200, 404):
            raise OSError("%s: %d" % (name, status))
        return page if status == 200 else Page(None, page.at_s)

    def _with_token(self, name: str) -> Tuple[int, Page]:
        if not self.token:
            life = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_S)}
            status, page = self._ask("PUT", "/latest/api/token", life)
            if status != 200:
                raise OSError("token: %d" % status)
            self.token = page.text or ""
        return self._ask("GET", "/latest/meta-data/" + name, {"X-aws-ec2-metadata-token": self.token})

    def _ask(self, method: str, path: str, headers: Dict[str, str]) -> Tuple[int, Page]:
        connection = http.client.HTTPConnection(self.place[0], self.place[1], timeout=QUESTION_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            date = answer.getheader("Date")
            text = answer.read(65536).decode("utf-8", "replace")
        except http.client.HTTPException as e:
            raise OSError(str(e)) from e
        finally:
            connection.close()
        return answer.status, Page(text, instant_s(date))


def instant_s(date: Optional[str]) -> float:
    """AWS's time in an answer's Date header; one without a zone is UTC. This machine's time if none can be read."""
    try:
        at = parsedate_to_datetime(date or "")
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return time.time()
