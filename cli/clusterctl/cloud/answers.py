"""AWS's answers as boto3 hands them on: what they lack is told from our own mistakes, and their pages have an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn  # `Any`: answers of services

from botocore.parsers import ResponseParserFactory
from clusterctl_infra.errors import CloudError

CLOCK_TOLERANCE = timedelta(seconds=60)
"""By so much this computer's clock may differ from AWS's: deadlines are counted here and kept there."""
MOST_PAGES = 1000
"""Of one list: 100,000 rows of EC2. botocore stops where a token comes twice, and follows fresh ones for ever."""


class NotInAnswer(CloudError, KeyError):
    """An answer of AWS has no such field; a KeyError too, as botocore knows it."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the answer has no {key!r}, which AWS always sends", code="OddAnswer")


class Answer(dict[str, Any]):
    """An answer, or an object in one."""

    def __missing__(self, key: str) -> NoReturn:
        raise NotInAnswer(key)


class AnswerParsers:
    """botocore's parsers, whose answers are `Answer`s through and through (its component `response_parser_factory`)."""

    def __init__(self) -> None:
        self._parsers = ResponseParserFactory()

    def set_parser_defaults(self, **defaults: Any) -> None:
        """As botocore's own."""
        self._parsers.set_parser_defaults(**defaults)

    def create_parser(self, protocol_name: str) -> Any:
        """A parser for this protocol of AWS's."""
        parser: Any = self._parsers.create_parser(protocol_name)
        parse = parser.parse
        parser.parse = lambda response, shape: answered(parse(response, shape))
        return parser


class BoundedPaginator:
    """One of botocore's paginators, whose pages have an end."""

    def __init__(self, paginator: Any, most_pages: int = MOST_PAGES) -> None:
        self._paginator = paginator
        self._most_pages = most_pages

    def paginate(self, **asked: Any) -> Iterator[Any]:
        """The pages. Raises CloudError where there are more than any account has, and botocore's errors."""
        for number, page in enumerate(self._paginator.paginate(**asked)):
            if number == self._most_pages:
                told = f"AWS's list goes on after {self._most_pages} pages, which no account has"
                raise CloudError(told, code="EndlessPages")
            yield page


def answered(value: Any) -> Any:
    """What botocore read, with an `Answer` for every dictionary in it."""
    if isinstance(value, dict):
        return Answer({key: answered(each) for key, each in value.items()})
    return [answered(each) for each in value] if isinstance(value, list) else value


def date_of(answer: Mapping[str, Any]) -> datetime | None:
    """When AWS sent the answer, by its own clock; a date without a zone is in UTC, as HTTP has it (RFC 9110, 5.6.7)."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        at = parsedate_to_datetime(headers["date"])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
