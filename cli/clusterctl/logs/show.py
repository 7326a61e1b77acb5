"""Shows logs: once, or for as long as the person looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterctl_infra.errors import SomeNodesFailed

from clusterctl.logs.following import Notice, followed
from clusterctl.logs.history import read_history
from clusterctl.logs.request import LogRequest
from clusterctl.logs.stream import LogLine
from clusterctl.output import Output
from clusterctl.ssh.reached import next_step
from clusterctl.ssh.results import NodeResult, failure_summary
from clusterctl.views.logs import log_json, log_text
from clusterctl.views.node_failure import node_failure_json


def show_history(request: LogRequest, output: Output, *, as_json: bool) -> int:
    """0, or 4 when a node was not reached, or has nothing of a source."""
    history = read_history(request, on_trouble=lambda name, trouble: output.note(f"[{name}] {trouble}"))
    results = history.results
    for line in history.lines:
        _show(line, request, output, as_json=as_json)
    if as_json:
        _tell_programs(results, request, output)
    if (summary := failure_summary(results)) is None:
        return SomeNodesFailed.exit_code if history.missing else 0
    output.note(summary)
    for step in _next_steps(results, request):
        output.note(f"  next: {step}")
    return SomeNodesFailed.exit_code


def show_on(request: LogRequest, output: Output, *, as_json: bool) -> int:
    """Until Ctrl-C; 4 where no node can ever have a line."""
    for item in followed(request):
        if isinstance(item, Notice):
            output.note(f"[{item.name}] {item.text}")
        else:
            _show(item, request, output, as_json=as_json)
    output.note(f"no line of {' or '.join(request.sources)} can ever come: nothing is left to follow")
    return SomeNodesFailed.exit_code


def _tell_programs(results: Sequence[NodeResult], request: LogRequest, output: Output) -> None:
    ranks = {node.slot: node.rank for node in request.nodes}
    for result in results:
        if (failure := result.failure) is not None:
            row = node_failure_json(result.name, slot=result.slot, rank=ranks[result.slot], failure=failure)
            output.json(row, is_line=True)


def _next_steps(results: Sequence[NodeResult], request: LogRequest) -> Iterable[str]:
    """What helps, each once."""
    nodes = {node.slot: node for node in request.nodes}
    failed = [(result.failure, nodes[result.slot]) for result in results if result.failure is not None]
    steps = (next_step(failure, request.inventory, node) for failure, node in failed)
    return dict.fromkeys(step for step in steps if step is not None)


def _show(line: LogLine, request: LogRequest, output: Output, *, as_json: bool) -> None:
    if as_json:
        output.json(log_json(line), is_line=True)
    else:
        has_sources = len(request.sources) > 1
        output.data(log_text(line, has_sources=has_sources, is_coloured=output.stdout_is_terminal))
