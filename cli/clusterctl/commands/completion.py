"""`clusterctl completion`: a script that teaches a shell our words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class
from clusterctl_infra.errors import UsageError

from clusterctl.output import Output

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CLUSTERCTL_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Completion of verbs, flags, clusters and nodes for your shell.

    \b
    Examples:
      echo 'eval "$(clusterctl completion bash)"' >> ~/.bashrc
      clusterctl completion fish > ~/.config/fish/completions/clusterctl.fish
    """
    output = ctx.find_object(Output)
    kind = get_completion_class(shell)
    if kind is None or output is None:
        raise UsageError(f"no completion for {shell}", hint="clusterctl completion --help")
    output.data(kind(ctx.find_root().command, {}, "clusterctl", VARIABLE).source().rstrip())
