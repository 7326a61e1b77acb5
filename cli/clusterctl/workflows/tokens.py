"""OSMO's tokens (`{{host:master}}`): hidden from Jinja, which could not parse most of them, and resolved last. Pure.

From OSMO's source at 1da31e1 (2026-11): which tokens there are, that only tokens without blanks are hidden, and that
tokens with and without blanks are resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from clusterctl_infra.nearest import did_you_mean

HOST, INPUT = "host", "input"
PLAIN = ("output", "workflow_id", "uuid")
"""Tokens without a colon and a name."""
NAMED = (HOST, INPUT)
KNOWN = (*PLAIN, *NAMED)
OPEN, CLOSE = "\ue010", "\ue011"
"""They replace the braces while Jinja reads the text: from Unicode's private use area, refused in a person's file."""
HIDDEN = re.compile(r"\{\{(" + "|".join(PLAIN) + r"|(?:" + "|".join(NAMED) + r"):[\w.-]+)\}\}")
WITH_COLON = re.compile(r"\{\{ *([A-Za-z_][\w-]*:[^{}\n]*?) *\}\}")
"""Something in braces with a colon, which can only be meant as a token."""
ANYWHERE = re.compile(r"\{\{ *((?:" + "|".join(PLAIN) + r")|(?:[A-Za-z_][\w-]*):[^{}\n]*?) *\}\}")


def hide(text: str) -> str:
    """The text with its tokens hidden from Jinja."""
    return HIDDEN.sub(lambda found: f"{OPEN}{found[1]}{CLOSE}", text)


def reveal(text: str) -> str:
    """The text with its tokens back."""
    return text.replace(OPEN, "{{").replace(CLOSE, "}}")


def tokens_in(text: str) -> Iterator[str]:
    """The text between the braces of each token, such as `host:master`; unknown tokens are among them."""
    return (found[1] for found in ANYWHERE.finditer(text))


def unknown_tokens(text: str) -> Iterator[tuple[int, str]]:
    """(line, sentence) for each text in braces that can only be meant as a token, and is unknown or has blanks.

    `text`: the file before Jinja renders it.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        for found in WITH_COLON.finditer(line):
            if not HIDDEN.fullmatch("{{" + found[1] + "}}"):
                yield number, f"{found[0]}: no token{_nearest(found[1])}"
            elif not HIDDEN.fullmatch(found[0]):
                yield number, f"{found[0]}: write it without blanks: {{{{{found[1]}}}}}"


def resolve(text: str, values: Mapping[str, str]) -> str:
    """The text with each token that has a value replaced by it."""
    return ANYWHERE.sub(lambda found: values.get(found[1], found[0]), text)


def _nearest(token: str) -> str:
    name = token.partition(":")[0]
    if name in NAMED:
        return f": {name}: wants the name of a task" + (" or a number" if name == INPUT else "")
    if name in PLAIN:
        return f" (did you mean {{{{{name}}}}}?)"
    return did_you_mean(name, KNOWN) or f"; there are {', '.join(KNOWN)}"
