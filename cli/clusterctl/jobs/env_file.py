"""A file of variables for a job: NAME=VALUE lines, as Docker and dotenv have them."""

from __future__ import annotations

import re
from pathlib import Path

from clusterctl_infra.errors import ConfigError, UsageError

from clusterctl.jobs.variables import VARIABLE, value_problem

HINT = "clusterctl run --help"
SECRET = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|KEY)(?:_|$)", re.IGNORECASE)
"""Finds the part of a variable's name that makes it a secret: in `HF_TOKEN` and `AWS_SECRET_ACCESS_KEY`, not in
`TOKENIZERS`."""
MOST_BYTES = 256 * 1024


def read_env_file(path: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """(variables, secrets): the secrets are those whose names say so. Raises UsageError, ConfigError."""
    if path is None:
        return {}, {}
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as e:
        raise UsageError(f"--env-file {path}: {e.strerror}", hint=HINT) from e
    if len(content) > MOST_BYTES:
        raise UsageError(f"--env-file {path}: larger than {MOST_BYTES // 1024} KiB", hint=HINT)
    try:
        text = content.decode()
    except UnicodeDecodeError as e:
        raise UsageError(f"--env-file {path}: not UTF-8 text", hint=HINT) from e
    found, problems = parse_env_file(text)
    if problems:
        raise ConfigError(f"{path}: nothing was started", problems=problems, hint=HINT)
    secrets = {name: value for name, value in found.items() if SECRET.search(name)}
    return {name: value for name, value in found.items() if name not in secrets}, secrets


def parse_env_file(text: str) -> tuple[dict[str, str], list[str]]:
    """The variables, and a sentence for each line that is wrong. Pure.

    `$NAME` in a value is not expanded; quotes around a value are removed.
    """
    found: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or VARIABLE.fullmatch(name) is None:
            # No part of the line is shown: it may be a secret, and the text before an = too, as in a line of a key.
            problems.append(f"  line {number:<3} write NAME=VALUE")
            continue
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        wrong = value_problem(name, value)
        if wrong is not None:
            problems.append(f"  line {number:<3} {name}: {wrong}")
            continue
        found[name] = value
    return found, problems
