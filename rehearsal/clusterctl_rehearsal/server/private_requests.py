"""The region's private requests: from the plugin, from `clusterctl` and from its `rehearse` verbs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any  # JSON values

from clusterctl_infra.names import NAME_TAG

from clusterctl_rehearsal.region.behaviour import Behaviour
from clusterctl_rehearsal.region.faults import Faults
from clusterctl_rehearsal.region.lookups import look_up
from clusterctl_rehearsal.region.record import Properties
from clusterctl_rehearsal.region.region import Progress, Region
from clusterctl_rehearsal.region.stack_file import read_settings
from clusterctl_rehearsal.region.types.identity import ROLE, ROLE_POLICY, ROLE_POLICY_ATTACHMENT
from clusterctl_rehearsal.region.types.network import VPC
from clusterctl_rehearsal.server.throttle import Throttle


class PrivateRequests:
    """One method per request; every answer is a JSON object."""

    def __init__(self, *, region: Region, behaviour: Behaviour, faults: Faults, throttle: Throttle) -> None:
        self._region = region
        self._behaviour = behaviour
        self._faults = faults
        self._throttle = throttle
        self.answers: dict[str, Callable[[Properties, Progress], Properties]] = {
            "ping": lambda asked, progress: {},
            "settings": self._settings,
            "stack": self._stack,
            "create": self._create,
            "update": self._update,
            "read": self._read,
            "delete": self._delete,
            "look-up": self._look_up,
            "fault": lambda asked, progress: {"said": faults.do(asked["verb"], asked["args"])},
            "list": lambda asked, progress: self._list(),
        }

    def check_credentials(self) -> None:
        """Raises AwsError where the person's credentials have expired."""
        self._behaviour.check_credentials()

    def _begin_as_person(self) -> None:
        """Called for every request of the provider, which uses the person's credentials. Raises AwsError."""
        self.check_credentials()
        self.as_aws()

    def as_aws(self) -> None:
        """Called for every request to AWS: applies its latency and its request limit. Raises AwsError."""
        settings = self._behaviour.settings()
        if settings.latency_ms:
            time.sleep(settings.latency_ms / 1000)
        self._throttle.take(settings.requests_per_s)

    def _settings(self, asked: Properties, progress: Progress) -> Properties:
        self._behaviour.register(asked["settings"])
        self._region.add_existing()
        return {"faults": self._behaviour.faults()}

    def _stack(self, asked: Properties, progress: Progress) -> Properties:
        """Takes the settings of the stack in a folder, before its program runs.

        Raises SettingsError, and MachineError if another home has the cluster's name or no machine can be made.
        """
        self._behaviour.register(read_settings(Path(asked["folder"])))
        self._region.add_existing()
        self._region.instances.room.check_name(self._behaviour.settings().machines, asked["cluster"])
        return {}

    def _create(self, asked: Properties, progress: Progress) -> Properties:
        self._begin_as_person()
        self._check_machines(asked)
        record = self._region.create(
            asked["type"],
            asked["inputs"],
            region=asked["region"],
            request=asked["request"],
            machines=asked["machines"],
            progress=progress,
        )
        return {"id": record.id, "outputs": self._region.read(record.token, record.id) or record.outputs}

    def _check_machines(self, asked: Properties) -> None:
        """Raises MachineError if this computer cannot make the stack's machines: then nothing is made."""
        room, name = self._region.instances.room, (asked["inputs"].get("tags") or {}).get(NAME_TAG)
        room.driver(asked["machines"])
        if asked["type"] == VPC and name is not None:
            room.check_name(asked["machines"], name)

    def _update(self, asked: Properties, progress: Progress) -> Properties:
        self._begin_as_person()
        record = self._region.update(asked["type"], asked["id"], asked["inputs"])
        return {"outputs": self._region.read(record.token, record.id) or record.outputs}

    def _read(self, asked: Properties, progress: Progress) -> Properties:
        self._begin_as_person()
        outputs = self._region.read(asked["type"], asked["id"])
        return {"outputs": outputs, "inputs": self._region.inputs(asked["type"], asked["id"])}

    def _delete(self, asked: Properties, progress: Progress) -> Properties:
        self._begin_as_person()
        if asked["type"] == ROLE:
            self._detach_policies(asked["id"])
        self._region.delete(asked["type"], asked["id"])
        return {}

    def _detach_policies(self, role_id: str) -> None:
        """Does what the provider does first with `force_detach_policies` (internal/service/iam/role.go, deleteRole)."""
        store = self._region.store
        if any(role.id == role_id and role.inputs.get("forceDetachPolicies") for role in store.live(ROLE)):
            for token in (ROLE_POLICY_ATTACHMENT, ROLE_POLICY):
                for policy in [resource for resource in store.live(token) if role_id in resource.refs]:
                    self._region.delete(token, policy.id)

    def _look_up(self, asked: Properties, progress: Progress) -> Properties:
        self._begin_as_person()
        region = self._region
        settings = self._behaviour.settings()
        answer = look_up(
            asked["type"], asked["args"], region=asked["region"], settings=settings, catalog=region.catalog
        )
        return {"outputs": answer}

    def _list(self) -> dict[str, Any]:
        return {
            "resources": [
                {
                    "id": row.id,
                    "type": row.token,
                    "cluster": row.tags.get(NAME_TAG, ""),
                    "region": row.region,
                    "state": row.state,
                    "node": row.facts.get("node"),
                    "machines": row.facts.get("machines"),
                    "private_ip": row.outputs.get("privateIp"),
                }
                for row in self._region.store.live()
            ],
            "faults": self._behaviour.faults(),
        }
