"""The group of all verbs, which finds the verb that was typed and runs it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.home_folder import is_private_or_missing
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.version import VERSION

from clusterctl.output import Output
from clusterctl.system.exit_codes import READER_GONE, exit_code_of
from clusterctl.verbs import VERBS, module_of


class VerbGroup(click.Group):
    """The verbs of `VERBS`; a verb's module is loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order in which a person meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command behind a verb; None for a word that is no verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(module_of(cmd_name)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that `args` starts with. Raises UsageError naming the nearest one."""
        word = args[0]
        if word not in VERBS and not word.startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"no verb {word!r}{did_you_mean(word, VERBS)}", hint="clusterctl --help")
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context that click makes; for `--help` and `--version` it prints here. For a lost reader see `invoke`."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError as e:
            raise click.exceptions.Exit(READER_GONE) from e

    def invoke(self, ctx: click.Context) -> object:
        """What the verb returns; READER_GONE if nobody reads stdout any more: click 8.5 would end the program with 1.

        Raises click's errors. For a flag without its value, click 8.5 does not say after which verb it was typed: that
        is added.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return READER_GONE
        except click.UsageError as error:
            verb = ctx.invoked_subcommand
            if error.ctx is None and verb is not None and (command := self.get_command(ctx, verb)) is not None:
                error.ctx = click.Context(command, info_name=verb, parent=ctx)
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs from `VERBS` alone: loading every verb for its help would take a second."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(verb, help=text) for verb, text in VERBS.items() if verb.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of verbs, from `VERBS` alone."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def help_width() -> int:
    """How wide help is printed: the terminal, at most 100. Asked here because click would load shutil (5 ms)."""
    try:
        return min(os.get_terminal_size().columns, 100)
    except OSError:
        return 80


@click.command(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": help_width()},
    subcommand_metavar="VERB [ARGS]...",
    epilog="Each verb has its own help with an example: clusterctl ssh --help",
)
@click.version_option(VERSION, "--version", prog_name="clusterctl", message="%(prog)s %(version)s")
@click.pass_obj
def cli(output: Output) -> None:
    """Multi-node GPU clusters on AWS: made by Pulumi, used through one command."""
    if is_private_or_missing(os.environ, os.geteuid()):
        return
    changed = importlib.import_module("clusterctl_infra.private_home").secure_home(os.environ)
    if changed is not None:
        output.note(f"clusterctl: {changed}")


def run_as_process(argv: Sequence[str]) -> int:
    """The exit code of `clusterctl ARGV` on this process's own streams."""
    # pydantic looks for plugins in all that is installed (20 ms of a start); none is ours.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    output = Output.of_process()
    sys.stdout = output.as_text()  # click prints help itself
    code = run(argv, output)
    output.close()
    return code if code or not output.has_lost_notes else ClusterctlError.exit_code


def run(argv: Sequence[str], output: Output) -> int:
    """The exit code of `clusterctl ARGV`; whatever goes wrong is reported on `output`."""
    return exit_code_of(
        lambda: cli.main(list(argv) or ["--help"], prog_name="clusterctl", standalone_mode=False, obj=output), output
    )
