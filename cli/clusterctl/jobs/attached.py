"""A job that somebody watches: shows its output as it comes, says how it ended, and decides what Ctrl-C does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any  # JSON

from clusterctl_infra.outputs import InventoryNode

from clusterctl.home import home_directory
from clusterctl.jobs.following import JobFollowing, NodeState, Notice, OutputLine
from clusterctl.jobs.job_state import JobState, merged
from clusterctl.jobs.kept_logs import keep_job
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import ended_text, line_json, line_text, node_called, state_json
from clusterctl.output import Output

DETACHED = 0
HUNG_UP = 128 + signal.SIGHUP
"""Not 0: nobody was told how the job ended, so a script that goes on only after a success must stop."""


class HungUp(Exception):
    """Raised on SIGHUP: the terminal or the session is gone, and the job goes on without it."""


class Attached:
    """Shows one job on the screen until it has ended."""

    def __init__(
        self,
        nodes: JobNodes,
        members: tuple[InventoryNode, ...],
        spec: Mapping[str, Any],
        *,
        keep: Callable[[JobState], None],
    ) -> None:
        """`keep` is called with the job's last state once it has ended, to bring its files to this computer."""
        self._keep = keep
        self._nodes = nodes
        self._members = members
        self._spec = spec
        self._name = str(spec["job"])

    def watch(self, output: Output, *, as_json: bool, is_shown: bool = True, has_names: bool = False) -> int:
        """Shows the job until it has ended, and returns its exit code.

        Returns 0 when the person leaves and the job goes on, and 129 after SIGHUP. `is_shown` False: no output lines.
        """
        following = JobFollowing(self._nodes, self._members, job=self._name, attempt=int(self._spec["attempt"]))
        items = following.items()
        with signals_as_exceptions(is_at_terminal=output.can_ask):
            while True:
                try:
                    for item in items:
                        self._show(item, output, as_json=as_json, is_shown=is_shown, has_names=has_names)
                    break
                except HungUp:
                    return HUNG_UP
                except KeyboardInterrupt:
                    # An interrupted generator has ended, so a new one takes what is still in the queue.
                    items = following.next_items()
                    if not self._cancels(output):
                        output.note(f"{self._name} goes on\n  next: clusterctl job attach {self._name}")
                        return DETACHED
        state = merged(self._spec, following.last_states)
        self._keep(state)
        return self.tell_end(state, output, as_json=as_json)

    def tell_end(self, state: JobState, output: Output, *, as_json: bool) -> int:
        """Says how the job ended, and returns its exit code."""
        if as_json:
            output.json(state_json(state), is_line=True)
        output.note(ended_text(state))
        return 255 if state.exit_code is None else state.exit_code

    def _cancels(self, output: Output) -> bool:
        """After Ctrl-C (or SIGTERM without a terminal): asks, and unless the person says no, cancels the job.

        Returns whether the nodes were told to cancel it.
        """
        if output.can_ask:
            try:
                if not output.confirm(f"\n{self._name}: cancel the job? No leaves it running."):
                    return False
            except KeyboardInterrupt:
                return False
        output.note(f"{self._name}: cancelling")
        self._nodes.ask(self._members, "cancel", self._name)
        return True

    def _show(
        self,
        item: OutputLine | NodeState | Notice,
        output: Output,
        *,
        as_json: bool,
        is_shown: bool,
        has_names: bool,
    ) -> None:
        cluster = str(self._spec["cluster"]) if has_names else None
        if isinstance(item, Notice):
            output.note(f"[{node_called(item.slot, cluster)}] {item.text}")
        elif isinstance(item, OutputLine) and is_shown:
            if as_json:
                output.json(line_json(item), is_line=True)
            else:
                output.data(line_text(item, has_ranks=has_ranks(self._spec), cluster=cluster))


def kept_attached(
    nodes: JobNodes, members: tuple[InventoryNode, ...], spec: Mapping[str, Any], output: Output
) -> Attached:
    """An `Attached` that keeps the job's output on this computer when it has ended, and says so if that fails."""

    def keep(state: JobState) -> None:
        try:
            for each in keep_job(state, nodes, members, home_directory(os.environ)):
                if each.error is not None:
                    output.note(f"its output is not kept here: {each.summary}")
        except OSError as e:
            output.note(f"its output is not kept here: {e.strerror} ({e.filename})")

    return Attached(nodes, members, spec, keep=keep)


def has_ranks(spec: Mapping[str, Any]) -> bool:
    """Whether a node has several ranks, so that each line has to name its rank."""
    return any(int(member["nproc"]) > 1 for member in spec["members"])


@contextmanager
def signals_as_exceptions(*, is_at_terminal: bool) -> Iterator[None]:
    """Within this block SIGHUP raises HungUp; without a terminal SIGTERM and SIGINT raise KeyboardInterrupt.

    A signal that this process was started to ignore stays ignored: SIGHUP under nohup, SIGINT in a script's background.
    """

    def hang_up(number: int, frame: FrameType | None) -> None:
        raise HungUp

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handlers: dict[int, Callable[[int, FrameType | None], None]] = {signal.SIGHUP: hang_up}
    if not is_at_terminal:
        handlers |= {signal.SIGTERM: interrupt, signal.SIGINT: interrupt}
    heeded = {number: handler for number, handler in handlers.items() if signal.getsignal(number) != signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in heeded.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
