"""docs/cli.md, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import get_args

import click
from clusterctl.program import cli
from clusterctl.ssh.failures import FAILURE_KINDS, Phase
from clusterctl.verbs import VERBS

HEAD = """\
# clusterctl

This page is generated from the commands by `scripts/docs`.

`--cluster NAME` says which cluster; else it is `$CLUSTERCTL_CLUSTER`, else the only one that this computer knows.
If no cluster is called `train`, that means `train@rehearsal`, else `train@hosts`. Nodes are written `2`, `0,2-5`,
`train-2`, `train-[0-1,3]` or `all`. Results go to stdout, everything else to stderr. clusterctl keeps what it knows in
`$CLUSTERCTL_HOME` (`~/.local/state/clusterctl`).

| exit code | meaning |
|---|---|
| 0 | all is well |
| 1 | it could not be done; the reason is named |
| 2 | a flag, an argument or cluster.yaml is wrong; nothing was done |
| 3 | no such cluster, node, job, workflow or instance type; or several clusters, and none was named |
| 4 | some of several nodes failed (`ssh`, `cp`, `sync`, `job`), did not answer or have no such log \
(`logs`, `top`, `jobs`, `job`, `workflow`, `bundle`), \
are not ready (`status`, `up`, `replace`), did not take the new deadline (`extend`) \
or have a fault (`sweep`, `check`); something still bills, or AWS did not say whether (`down`, `reap`) |
| 70 | a bug in clusterctl; the traceback is in `$CLUSTERCTL_HOME/log` |
| 130 | Ctrl-C |
| 255 | the one node named was not reached, or, for `jobs` and `job`, no node at all; \
`ssh` ended its command at `--timeout`; a job lost nodes (`run`, `job`) |

With `--json`, `ssh`, `sweep`, `check`, `top` and `logs` report a node's failure in the same fields: `node`, `slot`,
`rank`, and `error_class`, `error_phase`, `message`, which are null where nothing failed. `error_phase` is one of
{phases}.

| error_class | meaning |
|---|---|
{classes}
"""


def cli_reference() -> str:
    """The page's text: every verb with its help and its flags."""
    classes = "\n".join(f"| `{kind}` | {meaning} |" for kind, meaning in FAILURE_KINDS.items())
    head = HEAD.format(phases=", ".join(f"`{phase}`" for phase in get_args(Phase)), classes=classes)
    return "\n".join([head, *(_section(verb) for verb in VERBS)])


def _section(verb: str) -> str:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None  # it is one of VERBS
    context = click.Context(command, info_name=f"clusterctl {verb}")
    usage = " ".join([f"clusterctl {verb}", *command.collect_usage_pieces(context)])
    parts = [f"## {verb}\n", f"    {usage}\n", *_paragraphs(command.help or ""), *_flags(command, context)]
    return "\n".join(parts)


def _paragraphs(help_text: str) -> Iterator[str]:
    """The help as Markdown: a paragraph that click must not rewrap (`\\b`) becomes a block."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if not paragraph.startswith("\b"):
            yield paragraph + "\n"
            continue
        lines = paragraph.splitlines()[1:]
        if lines and lines[0].rstrip().endswith(":") and not lines[0].startswith(" "):
            yield f"{lines[0]}\n"
            lines = lines[1:]
            yield "\n".join(f"    {line.strip()}" for line in lines) + "\n"
        else:
            yield "\n".join(f"    {line.removeprefix('  ')}" for line in lines) + "\n"


def _flags(command: click.Command, context: click.Context) -> Iterator[str]:
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    records = [option.get_help_record(context) for option in options]
    rows = [record for record in records if record is not None and "--help" not in record[0]]
    if rows:
        yield "| flag | meaning |\n|---|---|"
        for flag, meaning in rows:
            yield f"| `{flag.replace('|', chr(92) + '|')}` | {meaning.replace('|', chr(92) + '|')} |"
        yield ""
