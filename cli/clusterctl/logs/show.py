"""Shows logs: once, or for as long as the person looks."""

from __future__ import annotations

from typing import NoReturn

from clusterctl_infra.errors import SomeNodesFailed

from clusterctl.logs.following import Notice, followed
from clusterctl.logs.history import read_history
from clusterctl.logs.request import LogRequest
from clusterctl.logs.stream import LogLine
from clusterctl.output import Output
from clusterctl.ssh.results import failure_summary
from clusterctl.views.logs import log_json, log_text


def show_history(request: LogRequest, output: Output, *, as_json: bool) -> int:
    """0, or 4 when a node's logs could not be read."""
    lines, results = read_history(request, on_trouble=lambda name, trouble: output.note(f"[{name}] {trouble}"))
    for line in lines:
        _show(line, request, output, as_json=as_json)
    if (summary := failure_summary(results)) is not None:
        output.note(summary)
        return SomeNodesFailed.exit_code
    return 0


def show_on(request: LogRequest, output: Output, *, as_json: bool) -> NoReturn:
    """Until Ctrl-C, which is the only way out."""
    items = followed(request)
    while True:
        item = next(items)
        if isinstance(item, Notice):
            output.note(f"[{item.name}] {item.text}")
        else:
            _show(item, request, output, as_json=as_json)


def _show(line: LogLine, request: LogRequest, output: Output, *, as_json: bool) -> None:
    if as_json:
        output.json(log_json(line), is_line=True)
    else:
        has_sources = len(request.sources) > 1
        output.data(log_text(line, has_sources=has_sources, is_coloured=output.stdout_is_terminal))
