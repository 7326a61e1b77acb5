"""Shows logs: as they are now, or as they are written, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from clusterctl_infra.errors import SomeNodesFailed

from clusterctl.logs.following import Notice, followed
from clusterctl.logs.history import read_history
from clusterctl.logs.line_time import without_time
from clusterctl.logs.request import LogRequest
from clusterctl.logs.stream import LogLine
from clusterctl.output import Output
from clusterctl.ssh.failure_hints import next_step
from clusterctl.ssh.failures import node_failure_json
from clusterctl.ssh.results import NodeResult, failure_summary
from clusterctl.text.node_set import fold_names


def show_history(request: LogRequest, output: Output, *, as_json: bool, has_names: bool) -> int:
    """Shows the logs as they are now; returns 0, or 4 if a node was not reached or lacks a source."""
    history = read_history(request, on_trouble=lambda name, trouble: output.note(f"[{name}] {trouble}"))
    results = history.results
    for line in history.lines:
        show_line(line, output, has_sources=len(request.sources) > 1, as_json=as_json, has_names=has_names)
    if as_json:
        _print_failures(results, request, output)
    if not history.lines and not history.missing and all(result.failure is None for result in results):
        output.note(nothing_line(request))
    if (summary := failure_summary(results)) is None:
        return SomeNodesFailed.exit_code if history.missing else 0
    output.note(summary)
    for step in _next_steps(results, request):
        output.note(f"  next: {step}")
    return SomeNodesFailed.exit_code


def follow_logs(request: LogRequest, output: Output, *, as_json: bool, has_names: bool) -> int:
    """Shows lines as they are written, until Ctrl-C; returns 4 if no node can send any line any more."""
    for item in followed(request):
        if isinstance(item, Notice):
            output.note(f"[{item.name}] {item.text}")
        else:
            show_line(item, output, has_sources=len(request.sources) > 1, as_json=as_json, has_names=has_names)
    output.note(f"nothing is left to follow: no node can send lines of {' or '.join(request.sources)}")
    return SomeNodesFailed.exit_code


def nothing_line(request: LogRequest) -> str:
    """What to say if the logs exist but have no line to show: `nothing in setup.sh of train-[0-1] that matches …`."""
    text = f"nothing in {' or '.join(request.sources)} of {fold_names(node.name for node in request.nodes)}"
    text += "" if request.since_s is None else f" since {datetime.fromtimestamp(request.since_s, UTC):%H:%M:%S} UTC"
    return text + ("" if request.grep is None else f" that matches --grep {request.grep}")


def _print_failures(results: Sequence[NodeResult], request: LogRequest, output: Output) -> None:
    ranks = {node.slot: node.rank for node in request.nodes}
    for result in results:
        if (failure := result.failure) is not None:
            row = node_failure_json(result.name, slot=result.slot, rank=ranks[result.slot], failure=failure)
            output.json(row, is_line=True)


def _next_steps(results: Sequence[NodeResult], request: LogRequest) -> Iterable[str]:
    """The commands that help with the nodes that were not reached, each once."""
    nodes = {node.slot: node for node in request.nodes}
    failed = [(result.failure, nodes[result.slot]) for result in results if result.failure is not None]
    steps = (next_step(failure, request.inventory, node) for failure, node in failed)
    return dict.fromkeys(step for step in steps if step is not None)


_BAD_WORDS = ("Xid", "SXid", "Out of memory: Killed")


def show_line(line: LogLine, output: Output, *, has_sources: bool, as_json: bool, has_names: bool = False) -> None:
    """Prints one line to stdout, without its own time; in red if it tells of a fault."""
    if as_json:
        output.json(log_json(line), is_line=True)
        return
    text = without_time(line.text)
    is_alarm = any(word in text for word in _BAD_WORDS)
    output.data_line(log_head(line, has_sources=has_sources, has_names=has_names), text, is_alarm=is_alarm)


def log_head(line: LogLine, *, has_sources: bool, has_names: bool = False) -> str:
    """What stands before a line: `[Node 0] [10:30:15] ` (UTC), or `[train-0] …` with `has_names`.

    The source's name is added if there are several; the file's name in its place, always, if the source is a pattern
    or has a variable.
    """
    at = datetime.fromtimestamp(line.at_s, UTC)
    is_pattern = line.file != "" and line.source.startswith(("/", "$")) and line.file != line.source
    named = line.file if is_pattern else line.source
    source = f" [{named}]" if has_sources or is_pattern else ""
    node = "shared" if line.is_shared else line.name if has_names else f"Node {line.slot}"
    return f"[{node}] [{at:%H:%M:%S}]{source} "


def log_json(line: LogLine) -> dict[str, object]:
    """The line as one line of NDJSON."""
    return {
        "node": line.name,
        "slot": line.slot,
        "time": datetime.fromtimestamp(line.at_s, UTC).isoformat(),
        "source": line.source,
        "file": line.file or None,
        "is_shared": line.is_shared,
        "line": line.text,
    }
