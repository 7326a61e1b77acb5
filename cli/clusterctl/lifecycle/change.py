"""One change of a stack: held against others, repaired before, recorded while it runs, shown as it goes."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from clusterctl_infra.errors import CloudError, ClusterctlError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import read_inventory
from clusterctl_infra.region_keys import RegionAccess

from clusterctl.cloud.boundary import Clients, ClientsAt
from clusterctl.cloud.capacity_trial import LASTS, LATE, end_trial
from clusterctl.cloud.clients import AwsClients, refuse_account
from clusterctl.cloud.delete_orphans import NOT_ENDED
from clusterctl.cloud.machine_resources import RESERVATION
from clusterctl.cloud.resource import CloudResource
from clusterctl.cost.sighting import SeenMachine
from clusterctl.cost.sighting_file import note_cancelled, note_look, note_resized, read_seen
from clusterctl.engine.boundary import Engine, RunRequest, RunResult, Verb
from clusterctl.engine.events import Event, Step
from clusterctl.engine.region import machine_kind, region_access, start_beside
from clusterctl.engine.repair import end_what_runs, repair_state
from clusterctl.engine.run import parallel_for
from clusterctl.engine.run_file import RunRecord, new_record, read_record, write_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import INSTANCE_TYPE, RESERVATION_TYPE, StackState
from clusterctl.engine.state_file import KeptState
from clusterctl.home import Home
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.failure import failure
from clusterctl.output import Output
from clusterctl.text.next_commands import stack_words

ChangeVerb = Literal["up", "extend", "replace", "down"]
TRIAL = "trial"
KEPT_LOGS = 20
STOPPING = "stopping: the engine finishes what it has begun; press Ctrl-C again to make it stop at once"
REPAIR_STOPPED = "stopped during the repair: what an interrupted run made is still there, and may bill."
STOPPING_AT_ONCE = (
    "stopping at once; press Ctrl-C once more to kill the engine: the next up or down repairs what it leaves half done"
)


@dataclass(kw_only=True)
class Change:
    """A stack held by this process."""

    verb: ChangeVerb
    engine: Engine
    home: Home
    output: Output
    cluster: str
    """With `@rehearsal` at its end in a rehearsal."""
    region: str
    environ: Mapping[str, str]
    previous: RunRecord | None
    """The run before this one, if it did not come to a good end."""
    clients_at: ClientsAt = AwsClients.at
    """Makes the clients for AWS."""
    _made: dict[RegionAccess | None, Clients] = field(default_factory=dict)
    _begun: list[str] = field(default_factory=list)
    """What was done that may have changed something."""
    _ids: set[str] = field(default_factory=set)
    """The ids of the clusters that the state was seen to hold."""
    _has_plugin: bool = False
    """The engine was seen to have its AWS plugin."""
    _region_starts: list[threading.Thread] = field(default_factory=list)
    """Threads that start the rehearsed region while the engine reads the state."""

    @property
    def stack(self) -> Stack:
        """The stack that changes."""
        return self.engine.stack

    @property
    def name(self) -> str:
        """The cluster's name, as cluster.yaml has it."""
        return self.cluster.removesuffix(REHEARSAL_SUFFIX)

    @property
    def is_rehearsal(self) -> bool:
        """Whether this is a rehearsal, in which nothing can reach AWS."""
        return self.engine.environment.rehearsal

    @property
    def has_machines(self) -> bool:
        """Whether nodes can be reached and waited for; a rehearsal may go without machines."""
        return not (self.is_rehearsal and machine_kind(self.stack.directory) == "none")

    def typed(self, directory: Path) -> str:
        """The stack in `directory` as it is typed after `up` or `down`, with the flags that tell it from others."""
        needs_flag = self.is_rehearsal and not self.stack.is_rehearsal_project
        return stack_words(directory, stack_name=self.stack.name, rehearse=needs_flag)

    @property
    def clients(self) -> Clients:
        """botocore's clients, made when first asked for; in a rehearsal for the region, which is started if need be."""
        return self._clients(self._rehearsed())

    def tell(self, text: str) -> None:
        """Shows a line about a repair."""
        self.output.note(f"  repair   {text}")

    def read_state(self) -> tuple[StackState | None, bool]:
        """The state, and whether an earlier run was cut off; processes that it left are ended. Raises EngineError."""
        was_cut_off = end_what_runs(self.engine, self.previous, self.tell)
        self._record((self.engine.environment.run_token,))
        if self.is_rehearsal:
            self._region_starts.append(start_beside(self.home, self.environ))
        state = self.engine.export()
        if state is not None:
            self._ids.update(filter(None, (state.cluster_id,)))
        return state, was_cut_off

    def repair_state(self, state: StackState, *, was_cut_off: bool) -> StackState:
        """The state after the repair, which may take minutes; a person who stops it is shown what that leaves.

        Raises EngineError, CloudError.
        """
        self.provide_plugin()
        self._begun.append("repair")
        self.note_machines()
        began = None if self.previous is None else datetime.fromisoformat(self.previous.began_at)
        try:
            return repair_state(
                self.engine,
                state,
                was_cut_off=was_cut_off,
                data_since=began,
                clients=lambda: self.clients,
                tell=self.tell,
                agreed=self.note_agreed,
            )
        except KeyboardInterrupt:
            shown = self.typed(self.stack.directory)
            self.output.note(f"{REPAIR_STOPPED}\n  next: clusterctl down {shown}  ends it; an up goes on with it")
            raise

    def provide_plugin(self) -> None:
        """Returns when the engine has its AWS plugin; asked once. Raises EngineError, before anything is changed."""
        if not self._has_plugin:
            self.engine.provide_plugin(self.output)
            self._has_plugin = True

    def clear_up(self) -> None:
        """Ends what a killed engine of this change left behind: processes that still run, and its lock.

        Raises EngineError.
        """
        end_what_runs(self.engine, read_record(self.home.run_file(self.cluster)), self.tell)

    def run(
        self,
        verb: Verb,
        *,
        nodes: int,
        display: Display,
        on_event: Callable[[Event], None] | None = None,
        options: Sequence[str] = (),
        config_file: Path | None = None,
        writes_state_once: bool = False,
    ) -> RunResult:
        """Runs the engine to its end. Raises EngineError when it did not start.

        `writes_state_once`: the state is written only at the end, for a run that makes or ends many machines; if it is
        killed, the machines are found by their tags.
        """
        self.provide_plugin()
        kept = KeptState(self.engine.backend_url(), self.stack)
        kept.follow()

        def handle(event: Event) -> None:
            kept.follow()
            display.event(event)
            self._note_step(event)
            if on_event is not None:
                on_event(event)

        self._begun.append(verb)
        engine = self.engine.at(self._rehearsed())
        engine = engine.writing_state_once() if writes_state_once else engine
        asked = RunRequest(
            verb=verb,
            parallel=parallel_for(nodes, rehearsal=self.is_rehearsal),
            log=self._log_file(verb),
            on_event=handle,
            on_interrupt=lambda count: self.output.note(STOPPING if count == 1 else STOPPING_AT_ONCE),
            options=tuple(options),
            config_file=config_file,
        )
        result = engine.run(asked)
        display.end()
        kept.end()
        return result

    def _note_step(self, event: Event) -> None:
        for cluster_id in self._ids:
            note_step(self.home.observed_file(cluster_id), event, at=datetime.now(UTC).replace(microsecond=0))

    def failure(self, result: RunResult, *, doing: str, more: str = "", hint: str | None = None) -> ClusterctlError:
        """The error that a failed run of this stack means."""
        return failure(result, doing=doing, cancel=self.engine.cancel_by_hand, more=more, hint=hint)

    def _rehearsed(self) -> RegionAccess | None:
        if not self.is_rehearsal:
            return None
        for thread in self._region_starts:
            thread.join()
        return region_access(self.home, self.environ)

    def _clients(self, rehearsed: RegionAccess | None) -> Clients:
        if rehearsed not in self._made:
            self._made[rehearsed] = self.clients_at(rehearsed, region=self.region)
        return self._made[rehearsed]

    def _log_file(self, verb: Verb) -> Path:
        """The path of a new log; deletes all but the newest of this cluster's older ones."""
        folder = self.home.log_dir
        older = [path for path in folder.glob("*.jsonl") if is_log_of(self.cluster, path.name)]
        for path in sorted(older, key=lambda path: path.stat().st_mtime)[:-KEPT_LOGS]:
            path.unlink(missing_ok=True)
            path.with_suffix(".err").unlink(missing_ok=True)
        return folder / f"{self.cluster}-{verb}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.jsonl"

    def finish(self) -> None:
        """Removes the run's record: the change came to a good end, and nothing is left to repair."""
        self.home.run_file(self.cluster).unlink(missing_ok=True)

    def note_machines(self) -> None:
        """Writes down what AWS says of machines and reservations now, for `cost`; no change fails because of that."""
        with contextlib.suppress(ClusterctlError, OSError):
            known = read_inventory(self.home.inventory_file(self.cluster))
            self._ids.add(known.cluster_id)
        with contextlib.suppress(ClusterctlError):
            for cluster_id in sorted(self._ids):
                note_look(self.clients, self.home.observed_file(cluster_id), cluster_id)

    def seen(self, state: StackState) -> dict[str, SeenMachine]:
        """Instance id → what AWS said so far of the machines that the state's cluster has or had."""
        return {} if state.cluster_id is None else read_seen(self.home.observed_file(state.cluster_id))

    def note_agreed(self, ended: CloudResource) -> None:
        """Writes down when AWS agreed to end a reservation: later AWS says when a machine ended, but not when these."""
        if ended.kind == RESERVATION and ended.cluster_id is not None:
            at = datetime.now(UTC).replace(microsecond=0)
            note_cancelled(self.home.observed_file(ended.cluster_id), ended.id, at=at)

    def note_what_became(self) -> None:
        """Writes down what AWS says after a change that began anything: AWS shows ended machines for an hour."""
        if self._begun:
            self.note_machines()

    def take_back(self) -> None:
        """Puts the run's file back as it was found, if the change was refused before it began."""
        file = self.home.run_file(self.cluster)
        if not self._begun and self.previous is not None:
            write_record(file, self.previous)
        elif not self._begun:
            file.unlink(missing_ok=True)

    def begin(self) -> None:
        """Writes down that this run is under way, with the unfinished ones before it."""
        before = () if self.previous is None or not self.previous.is_of_this_boot else self.previous.tokens
        self._record((*before, self.engine.environment.run_token))

    def _record(self, tokens: tuple[str, ...]) -> None:
        file = self.home.run_file(self.cluster)
        before = read_record(file)
        new = new_record(self.verb, tokens=tokens, stack=self.typed(self.stack.directory))
        kept = new if before is None else _with_kept(new, before)
        write_record(file, kept)

    @contextlib.contextmanager
    def trying(self, trial_id: str) -> Iterator[None]:
        """While entered, the run's record names the trial reservation, so that the next command can end it if this
        one is killed.
        """
        self._note_trial(trial_id)
        self._begun.append(TRIAL)
        try:
            yield
        except CloudError as e:
            if e.code == NOT_ENDED:
                raise
            self._forget_trial()
            raise
        self._forget_trial()

    def end_left_trial(self) -> None:
        """Ends the trial reservation of a killed run; one that AWS refuses to end is reported, and ends by itself."""
        left = self.previous
        if left is None or not left.trial:
            return
        is_elsewhere = left.trial_region not in ("", self.region)
        clients = self.clients.elsewhere(left.trial_region) if is_elsewhere else self.clients
        try:
            end_trial(clients, left.trial, tell=self.tell)
        except CloudError as e:
            self.tell(
                f"{e.message}. AWS ends it within {(LASTS + LATE).total_seconds() / 60:.0f} minutes of its making"
            )
            return
        self._note_trial("")

    def _forget_trial(self) -> None:
        self._note_trial("")
        self._begun.remove(TRIAL)

    def _note_trial(self, trial_id: str) -> None:
        file = self.home.run_file(self.cluster)
        record = read_record(file)
        if record is not None:
            where = self.region if trial_id else ""
            write_record(file, replace(record, trial=trial_id, trial_region=where))


def is_log_of(cluster: str, name: str) -> bool:
    """Whether a file of this name is a log of the cluster's runs: not of `train-eval`, which begins with `train-`."""
    return re.fullmatch(rf"{re.escape(cluster)}-[a-z]+-\d{{8}}-\d{{6}}\.jsonl", name) is not None


def _with_kept(new: RunRecord, before: RunRecord) -> RunRecord:
    """The record `new`, with the engines and the trial of the record that it replaces in the file."""
    return replace(new, engines=before.engines, trial=before.trial, trial_region=before.trial_region)


VPC_TYPE = "aws:ec2/vpc:Vpc"
_ARN = re.compile(r"arn:[^:]+:[^:]*:[^:]*:(?P<account>\d{12}):")


def account_of(state: StackState) -> str | None:
    """The account number that the state's network belongs to; None before there is one.

    A `down` that was cut off may have left machines or reservations but no network: then it is read from their ARN.
    """
    vpc = state.find(VPC_TYPE)
    if vpc is not None and vpc.outputs.get("ownerId"):
        return str(vpc.outputs["ownerId"])
    bills = (*state.of_type(RESERVATION_TYPE), *state.of_type(INSTANCE_TYPE))
    found = (_ARN.match(str(resource.outputs.get("arn") or "")) for resource in bills)
    return next((match["account"] for match in found if match is not None), None)


def refuse_other_account(state: StackState, account: str) -> None:
    """Raises CloudError when the credentials are of another account than the one the cluster is in."""
    refuse_account(account_of(state), account, undone=": nothing was changed")


def note_step(path: Path, event: Event, *, at: datetime) -> None:
    """Writes into `path` that a reservation was cancelled, or made larger or smaller; ignores all other events."""
    if not isinstance(event, Step) or event.type != RESERVATION_TYPE or event.stage != "done":
        return
    if event.op.startswith("delete"):
        note_cancelled(path, event.id, at=at)
    elif event.op == "update" and "instanceCount" in event.inputs:
        note_resized(path, event.id, int(event.inputs["instanceCount"]), at=at)
