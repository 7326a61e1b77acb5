"""Drives a workflow: starts its groups in their order, watches them, starts tasks again, stops what has to end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl_infra.errors import ClusterctlError, ConfigError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.jobs.images import fetch_image
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import ended_text
from clusterctl.jobs.start import JobStart, NodesInUse
from clusterctl.on_node.job import judge
from clusterctl.on_node.job.image_pull import registry_of
from clusterctl.on_node.job.lease import free_gpus
from clusterctl.on_node.workflow.barrier import KEY_VARIABLE
from clusterctl.workflows.course import (
    COMPLETED,
    FAILED,
    NOT_STARTED,
    RUNNING,
    GroupPlan,
    Step,
    TaskCourse,
    group_step,
    ready_groups,
    workflow_state,
)
from clusterctl.workflows.jobs_of_tasks import jobs_known_to
from clusterctl.workflows.model import Group
from clusterctl.workflows.placement import DoesNotFit, NodeCapacity, Placed, place
from clusterctl.workflows.task_job import Gate, Run, ranked, staged, task_request, values_of

POLL_S = 1.0
LEAD_PATIENCE_S = 10.0
"""How long a group's other tasks may take to end by themselves once its lead has completed."""
UNHEARD_S = 120.0
"""A task is taken to be lost when its node has not answered for this long."""


@dataclass(kw_only=True)
class Submission:
    """One workflow, from its submission to its end."""

    run: Run
    plans: tuple[GroupPlan, ...]
    nodes: JobNodes
    capacities: tuple[NodeCapacity, ...]
    secrets_of: Mapping[str, Mapping[str, str]]
    """Task → variable → value, for its credentials."""
    logins: Mapping[str, str]
    """Registry → USER:PASSWORD."""
    tell: Callable[[str], None]
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    courses: dict[str, TaskCourse] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    is_cancelled: bool = False
    _reported: dict[str, str] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _completed_s: dict[str, float] = field(default_factory=dict)
    _heard_s: dict[str, float] = field(default_factory=dict)
    _waits_since_s: dict[str, float] = field(default_factory=dict)
    _stopped: set[str] = field(default_factory=set)
    _restarts: dict[str, Step] = field(default_factory=dict)
    """Group → what to do with it, once the tasks that are being stopped for it have ended."""

    def watch(self) -> int:
        """Drives the workflow until no task runs or is to start, and returns the exit code.

        Raises ClusterctlError if a group cannot be started; other tasks may then still run.
        """
        while True:
            steps = {plan.name: self._step(plan) for plan in self.plans}
            for plan in self.plans:
                self._follow(plan, steps[plan.name])
            if not self.is_cancelled:
                self._start_ready({name: step.state for name, step in steps.items()})
            if not self._live() and (self.is_cancelled or not self._has_more()):
                return self._exit_code()
            self.sleep(POLL_S)
            self.refresh()

    def cancel(self) -> None:
        """Cancels all tasks that run; no more are started."""
        self.is_cancelled = True
        self._cancel_restarts()
        self._stop([task for task, course in self.courses.items() if course.state not in judge.FINAL])

    def leave(self) -> None:
        """Lets running tasks run. Cancels those that were stopped to be started again, which nobody will do now."""
        self._cancel_restarts()

    @property
    def state(self) -> str:
        """The state of the whole workflow, as one word."""
        return workflow_state(self.plans, self.courses)

    def refresh(self) -> None:
        """Asks the nodes of all running tasks for the tasks' states."""
        live = {task: course for task, course in self.courses.items() if course.state not in judge.FINAL}
        if not live:
            return
        nodes = {self.placed[task].node.slot: self.placed[task].node for task in live}
        heard = jobs_known_to(self.nodes, list(nodes.values()))
        now_s = self.now_s()
        for task, course in live.items():
            slot = self.placed[task].node.slot
            job = heard.get(slot, {}).get(course.job)
            if job is not None:
                self._heard_s[task] = now_s
                self._record(task, job)
            elif slot in heard or now_s - self._heard_s[task] > UNHEARD_S:
                self._mark_lost(task)

    def _record(self, task: str, job: JobState) -> None:
        before = self.courses[task]
        exit_code = job.exit_code if job.is_over else None
        self.courses[task] = TaskCourse(job=job.name, tries=before.tries, state=job.state, exit_code=exit_code)
        if job.is_over:
            self.tell(f"{task}: {ended_text(job)}")

    def _mark_lost(self, task: str) -> None:
        course = self.courses[task]
        self.courses[task] = TaskCourse(job=course.job, tries=course.tries, state=judge.LOST, exit_code=255)
        node = self.placed[task].node
        self.tell(f"{task}: lost: Node {node.slot} ({node.name}) does not know it any more, or does not answer")

    def _step(self, plan: GroupPlan) -> Step:
        return self._restarts.get(plan.name) or group_step(plan, self.courses)

    def _follow(self, plan: GroupPlan, step: Step) -> None:
        """Does for a group what `step` asks for: reports how it ended, stops tasks, or starts some again."""
        if step.state in (COMPLETED, FAILED) and self._reported.get(plan.name) != step.state:
            self._reported[plan.name] = step.state
            self.tell(f"group {plan.name}: {step.state}" + (f" because of {step.cause}" if step.cause else ""))
            self._completed_s[plan.name] = self.now_s()
        going_on = [
            task.name
            for task in plan.tasks
            if self.courses.get(task.name, NOT_STARTED).tries and self.courses[task.name].state not in judge.FINAL
        ]
        is_impatient = self.now_s() - self._completed_s.get(plan.name, 0.0) > LEAD_PATIENCE_S
        if step.state == FAILED or (step.state == COMPLETED and is_impatient):
            self._stop(going_on)
        elif step.again and not self.is_cancelled:
            self._start_again(plan, step, going_on)

    def _start_again(self, plan: GroupPlan, step: Step, going_on: Sequence[str]) -> None:
        """Starts tasks again. If some of them still go on, only stops those; a later call starts all of them."""
        if running := [task for task in going_on if task in step.again]:
            # Kept until they have started, because the tasks that are stopped now would count as failed.
            self._restarts[plan.name] = step
            self._stop(running, "restart")
            return
        group = self._group(plan)
        try:
            if len(step.again) == len(plan.tasks):
                avoided = {self.placed[task].node.slot for task in step.again} if step.is_elsewhere else set()
                same = tuple(self.placed[task.name] for task in group.tasks)
                self._begin(group, self._place(group, avoided) if step.is_elsewhere else same)
                self._restarts.pop(plan.name, None)
                return
            together = tuple(self.placed[task.name] for task in group.tasks)
            for task in step.again:
                self._begin_task(group, together, self.placed[task], None)
            self._forget_wait(group.name)
        except (DoesNotFit, NodesInUse) as e:
            self._wait_or_raise(plan, e)

    def _start_ready(self, states: Mapping[str, str]) -> None:
        for plan in ready_groups(self.plans, states):
            group = self._group(plan)
            try:
                self._begin(group, self._place(group, ()))
            except (DoesNotFit, NodesInUse) as e:
                self._wait_or_raise(plan, e)

    def _wait_or_raise(self, plan: GroupPlan, why: DoesNotFit | NodesInUse) -> None:
        """Reports once what the group waits for.

        Raises ConfigError once `queue_timeout` is over, unless a task of this workflow runs whose end may make room.
        """
        problems = why.problems if isinstance(why, NodesInUse) else (f"  group {plan.name}: {why}",)
        since_s = self._waits_since_s.setdefault(plan.name, self.now_s())
        patience_s = self.run.loaded.workflow.timeout.queue_timeout or 0.0
        if self._live() or self.now_s() - since_s < patience_s:
            if self._reported.get(plan.name) != problems[0]:
                self._reported[plan.name] = problems[0]
                self.tell(f"group {plan.name}: waiting: {problems[0].strip()}")
            return
        self._cancel_restarts()
        hint = "clusterctl jobs"
        raise ConfigError(f"group {plan.name} cannot start: other jobs have its nodes", problems=problems, hint=hint)

    def _place(self, group: Group, avoided: Collection[int]) -> tuple[Placed, ...]:
        """A node for each task of the group, by what is free now. Raises DoesNotFit."""
        answers = self.nodes.ask([capacity.node for capacity in self.capacities], "facts", self.run.id)
        capacities = []
        for capacity in self.capacities:
            answer = answers[capacity.node.slot]
            if answer.error is not None or answer.words["phase"] != "ready" or answer.words.get("is_reclaimed"):
                continue
            holders = answer.words["holders"]
            free = len(free_gpus(holders, int(answer.words["gpus"])))
            capacities.append(
                NodeCapacity(
                    node=capacity.node,
                    gpus=capacity.gpus,
                    free_gpus=min(capacity.free_gpus, free),
                    is_free=not holders,
                    cpus=capacity.cpus,
                    memory_mib=capacity.memory_mib,
                    storage_mib=capacity.storage_mib,
                )
            )
        return place(group.tasks, self.run.loaded.workflow.resources, capacities, avoided=avoided)

    def _begin(self, group: Group, placed: Sequence[Placed]) -> None:
        """Starts all tasks of a group, the lead first. If one cannot be started, the others are stopped.

        Raises ClusterctlError.
        """
        by_name = {each.task.name: each for each in placed}
        names = tuple(task.name for task in ranked(group))
        self._keys[group.name] = secrets.token_hex(32)
        gate = Gate(names=names, connect="", port=0) if group.has_barrier else None
        begun = []
        self._fetch_images(placed)
        # No node was asked while images were fetched, so none of them counts as silent.
        self._heard_s = dict.fromkeys(self._heard_s, self.now_s())
        try:
            for name in names:
                port = self._begin_task(group, placed, by_name[name], gate)
                begun.append(name)
                if gate is not None and not gate.port:
                    gate = Gate(names=names, connect=by_name[name].node.private_ip, port=port)
        except NodesInUse as e:
            if not begun:
                raise
            self._stop(begun)
            raise ConfigError(f"group {group.name}: not all of it could start", problems=e.problems) from e
        except BaseException:
            self._stop(begun)
            raise
        self._forget_wait(group.name)

    def _forget_wait(self, group: str) -> None:
        """Forgets the group's wait: a later one, as after a move to other nodes, is reported and timed anew."""
        self._waits_since_s.pop(group, None)
        self._reported.pop(group, None)

    def _fetch_images(self, placed: Sequence[Placed]) -> None:
        """Fetches the tasks' images, one after the other, each on all its nodes at the same time.

        Done before any task starts, so that none waits for another's image. Raises ClusterctlError.
        """
        if not self.run.has_containers:
            return
        for image in sorted({each.task.image for each in placed}):
            nodes = {each.node.slot: each.node for each in placed if each.task.image == image}
            login = self.logins.get(registry_of(image), "")
            fetch_image(image, self.nodes, list(nodes.values()), name=self.run.id, tell=self.tell, login=login)

    def _begin_task(self, group: Group, together: Sequence[Placed], placed: Placed, gate: Gate | None) -> int:
        """Starts a task, and returns a port on its node that no other job uses. `together`: all tasks of the group."""
        name = placed.task.name
        tries = self.courses.get(name, NOT_STARTED).tries + 1
        index = [task.name for task in self.run.loaded.workflow.all_tasks()].index(name)
        job = f"{self.run.id}-{index}" + (f"-r{tries}" if tries > 1 else "")
        values = values_of(self.run, together, placed, job)
        own_secrets = {**self.secrets_of[name], KEY_VARIABLE: self._keys[group.name]}
        request = task_request(self.run, group, placed, job, tries=tries, values=values, secrets=sorted(own_secrets))
        with staged(self.run, placed, job, values, gate) as snapshot:
            start = JobStart(
                request=request,
                nodes=self.nodes,
                snapshot=snapshot,
                secrets=own_secrets,
                registry_login=self.logins.get(registry_of(placed.task.image), ""),
                wait_s=0.0,
                tell=lambda text: None,
            )
            spec = start.begin()
        self.placed[name] = placed
        self.courses[name] = TaskCourse(job=job, tries=tries, state=judge.STARTING, exit_code=None)
        self._heard_s[name] = self.now_s()
        self._stopped.discard(name)
        again = f", try {tries}" if tries > 1 else ""
        self.tell(f"{name}: started on Node {placed.node.slot} ({placed.node.name}) as {job}{again}")
        return int(spec["jax_port"])

    def _stop(self, tasks: Sequence[str], *then: str) -> None:
        """Cancels the tasks' jobs; a job that was cancelled before is left alone. `then`: `restart`, or nothing."""
        for task in tasks:
            if task in self._stopped:
                continue
            self._stopped.add(task)
            node: InventoryNode = self.placed[task].node
            for answer in self.nodes.ask((node,), "cancel", self.courses[task].job, *then).values():
                if answer.error is not None:
                    self.tell(answer.error_line)

    def _cancel_restarts(self) -> None:
        """Cancels for good what was stopped to be started again: else `show` would call its group running."""
        tasks = [task.name for plan in self.plans if plan.name in self._restarts for task in plan.tasks]
        self._stopped.difference_update(tasks)
        self._stop(tasks)

    def _live(self) -> bool:
        return any(course.state not in judge.FINAL for course in self.courses.values())

    def _has_more(self) -> bool:
        """Whether a group or a task may still be started."""
        steps = {plan.name: self._step(plan) for plan in self.plans}
        states = {name: step.state for name, step in steps.items()}
        return RUNNING in states.values() or bool(ready_groups(self.plans, states))

    def _group(self, plan: GroupPlan) -> Group:
        return next(group for group in self.run.loaded.workflow.all_groups() if group.name == plan.name)

    def _exit_code(self) -> int:
        """0 if all groups completed, 130 if it was cancelled, else the exit code of a task that made its group fail."""
        if self.state == COMPLETED:
            return 0
        causes = [self._step(plan).cause for plan in self.plans]
        codes = [self.courses[cause].exit_code for cause in causes if cause]
        return 130 if self.is_cancelled else next((code for code in codes if code), ClusterctlError.exit_code)
