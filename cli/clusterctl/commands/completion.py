"""`clusterctl completion`: a script with which a shell completes clusterctl's verbs, flags and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class
from clusterctl_infra.errors import UsageError

from clusterctl.output import Output

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CLUSTERCTL_COMPLETE"
ZSH_FIRST = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
"""Click's script calls `compdef`, which zsh has only after compinit; without a .zshrc nothing has called that."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Completion of verbs, flags, clusters and nodes for your shell.

    \b
    Examples:
      echo 'eval "$(clusterctl completion bash)"' >> ~/.bashrc
      echo 'eval "$(clusterctl completion zsh)"' >> ~/.zshrc
      clusterctl completion fish > ~/.config/fish/completions/clusterctl.fish
    """
    output = ctx.find_object(Output)
    kind = get_completion_class(shell)
    if kind is None or output is None:
        raise UsageError(f"no completion for {shell}", hint="clusterctl completion --help")
    script = kind(ctx.find_root().command, {}, "clusterctl", VARIABLE).source().rstrip()
    if shell == "zsh":
        first, rest = script.split("\n", maxsplit=1)  # zsh wants `#compdef clusterctl` in the first line of a file
        script = f"{first}\n{ZSH_FIRST}\n{rest}"
    output.data(script)
