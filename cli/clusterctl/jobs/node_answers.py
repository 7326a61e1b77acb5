"""Asks the job program on nodes: one verb on many nodes, and each node's answer, or why there is none."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any  # what nodes answer

from clusterctl_infra.errors import ClusterctlError, NotReached
from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import NotAsExpected, parsed

from clusterctl.jobs.node_program import NOT_THERE, archive, command, install_command
from clusterctl.jobs.node_words import MOST_ANSWER_BYTES, checked_answer
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult, outcome

ANSWER_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a node said, or why it did not."""

    node: InventoryNode
    words: Mapping[str, Any]
    error: str | None
    is_reached: bool = True

    @property
    def error_line(self) -> str:
        """The error for a person: `Node 1 (train-1): …`."""
        return f"Node {self.node.slot} ({self.node.name}): {self.error}"


@dataclass(frozen=True, kw_only=True)
class JobNodes:
    """A cluster's nodes, with connections that stay open from question to question."""

    inventory: Inventory
    keys: LoginKeys
    deadlines: Deadlines
    pool: LinkPool = field(default_factory=LinkPool)

    def ask(
        self,
        nodes: Sequence[InventoryNode],
        verb: str,
        *arguments: str,
        stdin: IO[bytes] | None = None,
        timeout_s: float = ANSWER_S,
    ) -> dict[int, Answer]:
        """Slot → the answer of its node to a verb of the job program, which is installed where a node lacks it.

        `stdin` is sent to every node.
        """
        if not nodes:
            return {}
        line = Command(line=command(verb, *arguments), timeout_s=timeout_s)
        results = self._run(nodes, line, stdin)
        without = [node for node in nodes if results[node.slot].exit_code == NOT_THERE]
        if without:
            results |= self._install(without)
            if stdin is not None:
                stdin.seek(0)
            results |= self._run([node for node in without if results[node.slot].is_ok], line, stdin)
        return {node.slot: answer_of(verb, node, results[node.slot]) for node in nodes}

    def _install(self, nodes: Sequence[InventoryNode]) -> dict[int, NodeResult]:
        with tempfile.TemporaryFile() as program:
            program.write(archive())
            program.seek(0)
            return self._run(nodes, Command(line=install_command(), timeout_s=ANSWER_S), program)

    def _run(self, nodes: Sequence[InventoryNode], line: Command, stdin: IO[bytes] | None) -> dict[int, NodeResult]:
        return run_on_nodes(
            self.inventory,
            nodes,
            line,
            keys=self.keys,
            deadlines=self.deadlines,
            stdin=stdin,
            pool=self.pool,
        )


def answer_of(verb: str, node: InventoryNode, result: NodeResult) -> Answer:
    """The node's answer: the last line that its program printed, as JSON. If that is malformed, the node has failed."""
    if result.failure is not None:
        return Answer(node=node, words={}, error=result.failure.message_under(node.name), is_reached=False)
    line = result.stdout.strip().rpartition(b"\n")[2]
    try:
        words = checked_answer(verb, parsed(line, most_bytes=MOST_ANSWER_BYTES))
    except NotAsExpected as e:
        errors = result.stderr.decode(errors="replace").strip().splitlines()
        odd = f"its answer cannot be read: {e}" if line else outcome(result)
        return Answer(node=node, words={}, error=errors[-1] if errors else odd)
    error = words.get("error")
    return Answer(node=node, words=words, error=None if error is None else str(error))


def refuse_errors(answers: Sequence[Answer], what: str, *, hint: str = "clusterctl status") -> None:
    """Raises NotReached if a node was not reached, ClusterctlError if one answered with an error.

    `what` begins the message.
    """
    failed = [answer for answer in answers if answer.error is not None]
    if not failed:
        return
    first = "; ".join(answer.error_line for answer in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    kind = ClusterctlError if all(answer.is_reached for answer in failed) else NotReached
    raise kind(f"{what}: {first}{more}", hint=hint)
