"""The pages for people who use clusterctl: every command in them exists, with its flags."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from clusterctl.program import cli

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", ROOT / "examples" / "first-cluster.md", *sorted((ROOT / "docs").glob("*.md")))
COMMAND = re.compile(r"(?:^    |^ {7}|`)clusterctl ([^`\n]+)", re.MULTILINE)


def commands_in(text: str) -> list[str]:
    """What follows `clusterctl` in code blocks and between backticks, without comments and pipes to jq."""
    return [found.split(" # ")[0].split(" | jq ")[0].strip() for found in COMMAND.findall(text)]


def all_commands() -> list[str]:
    return sorted({words for page in PAGES for words in commands_in(page.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("words", all_commands())
def test_a_command_that_a_page_names_exists_with_its_flags(words: str) -> None:
    command: click.Command = cli
    rest = shlex.split(words)
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, f"there is no verb {rest[0]}"
        command, rest = found, rest[1:]
    settings = {"allow_interspersed_args": command.allow_interspersed_args, **command.context_settings}
    context = click.Context(command, **settings)
    command.make_parser(context).parse_args(list(rest))


def test_commands_are_found_in_blocks_and_between_backticks() -> None:
    text = (
        "Type `clusterctl plan --online`, then\n\n    clusterctl nodes --json | jq .  # all\n    clusterctl up  # now\n"
    )
    assert commands_in(text) == ["plan --online", "nodes --json", "up"]


def test_a_flag_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        test_a_command_that_a_page_names_exists_with_its_flags("up stacks/mine --no-such-flag")
