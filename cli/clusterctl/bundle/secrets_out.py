"""Removes what looks like a secret from texts that go to somebody else. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any  # JSON

from clusterctl.jobs.env_file import SECRET
from clusterctl.on_node.job.redaction import hidden_bytes, redacted

PATTERNS = (
    (re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), rb"***"),
    (re.compile(rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), rb"***"),
    (re.compile(rb"\b(?:hf_|ghp_|gho_|github_pat_|glpat-|sk-|xox[bp]-)[A-Za-z0-9_-]{16,}"), rb"***"),
    (re.compile(rb"(?i)(://[^/\s:@]+:)[^@\s/]+@"), rb"\1***@"),
    (re.compile(rb"(?i)\b(authorization: *(?:bearer|basic) +)\S+"), rb"\1***"),
    (
        re.compile(
            rb"(?i)((?:token|secret|password|passwd|api[_-]?key|access[_-]?key)[\"']?\s*[=:]\s*[\"']?)[^\s\"',}]{4,}"
        ),
        rb"\1***",
    ),
)
"""The forms of keys that services document (2026-11), and `name = value` if the name says that it is a secret."""


def without_secrets(content: bytes, values: Iterable[str]) -> bytes:
    """The text with these values, and what looks like a secret, replaced by ***."""
    content = redacted(content, hidden_bytes(form for value in values for form in _written(value)))
    for pattern, shown in PATTERNS:
        content = pattern.sub(shown, content)
    return content


def _written(value: str) -> tuple[str, ...]:
    """The value itself, and as JSON writes it with and without escapes for non-ASCII letters."""
    return (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])


def secret_values(spec: Mapping[str, Any]) -> list[str]:
    """The values in a job's spec whose names say that they are secrets: of variables, and of flags in its command."""
    environment: Mapping[str, str] = spec.get("environment") or {}
    found = [str(value) for name, value in environment.items() if SECRET.search(name)]
    words: Sequence[str] = [str(word) for word in (*spec.get("launcher_options", ()), *spec.get("command", ()))]
    for word, following in pairwise((*words, "")):
        flag, equals, value = word.partition("=")
        if word.startswith("-") and SECRET.search(flag.lstrip("-").replace("-", "_")):
            # If the word after a flag begins with -, it is the next flag.
            found.append(value if equals else "" if following.startswith("-") else following)
    return [value for value in found if value]
