"""AWS's answers as botocore returns them: a missing key is reported as AWS's fault and not as a bug of ours, and pages
have a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Network
from typing import Any, NoReturn  # `Any`: answers of services

from botocore.parsers import ResponseParserError, ResponseParserFactory
from clusterctl_infra.errors import CloudError

CLOCK_TOLERANCE = timedelta(seconds=60)
"""How far this computer's clock may differ from AWS's: deadlines are computed here and enforced there."""
MOST_PAGES = 1000
"""The most pages of one list: 100,000 rows of EC2. botocore stops if a token comes twice, but follows new ones for
ever."""
_INTERFACES = re.compile(rb"<networkInterfaceSet>.*?</networkInterfaceSet>", re.DOTALL)
"""The network interfaces of one instance. The shortest match is the whole element: no element inside has its name (EC2
API in botocore 1.44, Instance)."""


class NotInAnswer(CloudError, KeyError):
    """An answer lacks a field that AWS always sends. It is also a KeyError, as botocore expects for a missing key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the answer has no {key!r}, which AWS always sends", code="OddAnswer")


class OddAnswer(CloudError):
    """An answer says what AWS never says: it is from a proxy or a stand-in, or the mistake is ours. It is not used."""

    def __init__(self, what: str) -> None:
        super().__init__(f"AWS answered {what}", code="OddAnswer")


def network_in(answer: Mapping[str, Any], key: str, *, largest: int = 0) -> IPv4Network:
    """The address or range of addresses in a field, no larger than /`largest`. Raises CloudError."""
    text = answer[key]
    try:
        found = IPv4Network(text)
    except (ValueError, TypeError) as e:
        raise OddAnswer(f"{key} {text!r}, no IPv4 address or range") from e
    if found.prefixlen < largest:
        raise OddAnswer(f"{key} {text!r}, a range larger than /{largest}")
    return found


def text_in(answer: Mapping[str, Any], key: str, what: str) -> str:
    """The text in a field. Raises CloudError if it is missing or empty; `what`: the thing that should have it."""
    text = answer.get(key)
    if not isinstance(text, str) or not text:
        raise OddAnswer(f"no {key} for {what}")
    return text


class Answer(dict[str, Any]):
    """An answer of AWS, or an object in one; a missing key raises NotInAnswer."""

    def __missing__(self, key: str) -> NoReturn:
        raise NotInAnswer(key)


class AnswerParsers:
    """botocore's parsers, whose answers are `Answer`s at every level (its component `response_parser_factory`)."""

    def __init__(self) -> None:
        self._parsers = ResponseParserFactory()

    def set_parser_defaults(self, **defaults: Any) -> None:
        """Passes the defaults on to botocore's own factory."""
        self._parsers.set_parser_defaults(**defaults)

    def create_parser(self, protocol_name: str) -> Any:
        """A parser for this protocol of AWS's."""
        parser: Any = self._parsers.create_parser(protocol_name)
        parse = parser.parse
        parser.parse = lambda response, shape: _parsed(parse, response, shape)
        return parser


class BoundedPaginator:
    """One of botocore's paginators, whose pages have an end."""

    def __init__(self, paginator: Any, most_pages: int = MOST_PAGES) -> None:
        self._paginator = paginator
        self._most_pages = most_pages

    def paginate(self, **asked: Any) -> Iterator[Any]:
        """The pages. Raises CloudError if there are more than any account has, and botocore's errors."""
        for number, page in enumerate(self._paginator.paginate(**asked)):
            if number == self._most_pages:
                message = f"AWS's list goes on after {self._most_pages} pages, which no account has"
                raise CloudError(message, code="EndlessPages")
            yield page


def pages_by_token(ask: Callable[..., Any], what: str, *, most_pages: int = MOST_PAGES) -> Iterator[Any]:
    """The pages of a list without a paginator in botocore. Raises CloudError, with `what`, if they do not end.

    `ask` takes a NextToken. Callers write out the client's call in a lambda: tests search the code for such calls, to
    know which rights are needed.
    """
    following = dict[str, Any]()
    for _ in range(most_pages):
        page = ask(**following)
        yield page
        if not page.get("NextToken"):
            return
        following = {"NextToken": page["NextToken"]}
    raise CloudError(f"{what}: AWS's list goes on after {most_pages} pages", code="EndlessPages")


def without_interfaces(response_dict: dict[str, Any], **_: object) -> None:
    """Takes the network interfaces out of an answer to DescribeInstances, before botocore reads it.

    Nobody here asks for them, and for a machine with 32 they are nine tenths of the answer. What a person wrote cannot
    be taken for them: in XML the `<` of a tag's value is written `&lt;`.
    """
    response_dict["body"] = _INTERFACES.sub(b"", response_dict["body"])


def _parsed(parse: Callable[[Any, Any], Any], response: Any, shape: Any) -> Any:
    """The parsed answer. Raises ResponseParserError, also for a number or a time that cannot be read: botocore 1.44
    lets such a ValueError through.
    """
    try:
        return answered(parse(response, shape))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        raise ResponseParserError(f"an answer that cannot be read: {e}") from e


def answered(value: Any) -> Any:
    """What botocore read, with an `Answer` for every dictionary in it."""
    if isinstance(value, dict):
        return Answer({key: answered(each) for key, each in value.items()})
    return [answered(each) for each in value] if isinstance(value, list) else value


def date_of(answer: Mapping[str, Any]) -> datetime | None:
    """When AWS sent the answer, by its own clock; None if that cannot be read.

    A date without a zone is in UTC, as in HTTP (RFC 9110, 5.6.7).
    """
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        at = parsedate_to_datetime(headers["date"])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
