"""Nodes that play a workflow's jobs in a time of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any  # JSON

from clusterctl.jobs.job_state import job_states
from clusterctl.jobs.node_answers import Answer
from clusterctl.on_node.job import judge
from clusterctl.workflows.jobs_of_tasks import KnownWorkflow, workflows_of
from clusterctl_infra.outputs import InventoryNode

from tests.unit.cli.workflows.workflow_files import inventory

Ends = Callable[[str, float], int | None]
"""A job's exit code by its name and its age in seconds; None while it goes on."""


class FakeNodes:
    """Nodes that start every job, and end it as the test says."""

    def __init__(self, nodes: int, ends: Ends) -> None:
        self.inventory = inventory(nodes)
        self.now_s = 1000.0
        self.asked: list[tuple[str, str]] = []
        self.slots_asked: list[list[int]] = []
        self.held: set[int] = set()
        self.reclaimed: set[int] = set()
        self.logins: list[str] = []
        self._ends = ends
        self._jobs: dict[str, dict[str, Any]] = {}

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def ask(
        self,
        nodes: Sequence[InventoryNode],
        verb: str,
        *arguments: str,
        stdin: IO[bytes] | None = None,
        timeout_s: float = 60.0,
    ) -> dict[int, Answer]:
        if verb not in ("facts", "list"):
            self.slots_asked.append([node.slot for node in nodes])
            self.asked.append((verb, arguments[0]))
        return {
            node.slot: Answer(node=node, words=self._answer(node.slot, verb, arguments, stdin), error=None)
            for node in nodes
        }

    def _answer(self, slot: int, verb: str, arguments: Sequence[str], stdin: IO[bytes] | None) -> Mapping[str, Any]:
        if verb == "facts":
            holders = [{"job": "other", "gpus": None}] if slot in self.held else []
            facts = {"slot": slot, "cluster_id": "0123456789ab", "generation": 1, "gpus": 8, "phase": "ready"}
            facts["is_reclaimed"] = slot in self.reclaimed
            return {**facts, "holders": holders, "is_name_taken": False, "ports_in_use": [], "engine": "podman"}
        if verb == "pull":
            if stdin is not None:
                stdin.seek(0)  # each node reads all of it
            self.logins.append("" if stdin is None else json.loads(stdin.readline())["login"])
            return {"image_id": "sha256:1"}
        if verb == "take":
            return {"gpus": None, "holders": []}
        if verb == "prepare" and stdin is not None:
            spec = json.loads(stdin.readline())["spec"]
            self._jobs[arguments[0]] = {"spec": spec, "slot": slot, "since_s": self.now_s, "is_cancelled": False}
        if verb == "cancel":
            self._jobs[arguments[0]].update(is_cancelled=True, is_to_restart="restart" in arguments)
        if verb == "list":
            return {"jobs": [self._row(name, job) for name, job in self._jobs.items() if job["slot"] == slot]}
        return {}

    def _row(self, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        code = 130 if job["is_cancelled"] else self._ends(name, self.now_s - job["since_s"])
        state = judge.RUNNING if code is None else judge.SUCCEEDED if code == 0 else judge.FAILED
        state = judge.CANCELLED if job["is_cancelled"] else state
        outcome = None if code is None else {"state": state, "exit_code": code, "cause": "", "failure": None}
        more = {"is_to_restart": job.get("is_to_restart", False)}
        return {"spec": job["spec"], "state": {"state": state, "since_s": self.now_s, "outcome": outcome, **more}}

    def known(self) -> KnownWorkflow:
        """The workflow from another terminal, which has nothing but what the nodes say."""
        answers = {node.slot: self._answer(node.slot, "list", (), None) for node in self.inventory.nodes}
        (workflow,) = workflows_of(job_states(answers))
        return workflow

    def shown(self) -> str:
        """The workflow's state as another terminal shows it."""
        return self.known().state

    def started(self) -> list[str]:
        return [job for verb, job in self.asked if verb == "start"]
