"""The Identity resource: what a cluster is, decided once and kept in the state."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # property values

from clusterctl_infra.identity import CLUSTER_ID_LENGTH, SEED_BYTES
from clusterctl_infra.launch import launch_changes
from clusterctl_infra.names import NONCE_VARIABLE
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.property_values import UNKNOWN, Secret, Unknown
from clusterctl_infra.provider.resource import CheckFailure, Difference, Place, Properties, ResourceRefused

_TEXTS = ("name", "owner", "image_spec", "image_candidate", "zone_candidate")
_IMAGE_ID = re.compile(r"ami-[0-9a-f]{8,17}")


@dataclass(frozen=True, kw_only=True)
class IdentityResource:
    """Makes identities.

    `owner` and `zone_candidate` count only at birth, `image_candidate` at birth and whenever `image_spec` changes.
    `launch`: how the run's machines are launched; None while there are none on purpose. `instance_type`: the type that
    was chosen from a list; None without a list.
    """

    home: LocalHome
    environ: Mapping[str, str]
    now: Callable[[], datetime]

    def check(self, inputs: Properties) -> list[CheckFailure]:
        """Every input that is missing or not what it should be."""
        failures = [
            CheckFailure(property=name, reason=f"{name} is {inputs.get(name)!r}; it has to be a text that is not empty")
            for name in _TEXTS
            if not _is_text(inputs.get(name))
        ]
        image = inputs.get("image_candidate")
        if isinstance(image, str) and image and _IMAGE_ID.fullmatch(image) is None:
            failures.append(
                CheckFailure(
                    property="image_candidate", reason=f"{image!r} is not an AMI id such as ami-0abc1234def567890"
                )
            )
        run = inputs.get("run")
        if not isinstance(run, Unknown) and (not isinstance(run, int) or isinstance(run, bool) or run < 1):
            failures.append(
                CheckFailure(property="run", reason=f"run is {run!r}; it has to be a whole number from 1 on")
            )
        return failures

    def difference(self, state: Properties, old_inputs: Properties, inputs: Properties) -> Difference:
        """Another name is another cluster; a new run or image changes the same one.

        Raises ResourceRefused when machines of one run would be launched differently from those that it has, or when
        nodes would get other addresses or interfaces than at birth.
        """
        if inputs["name"] != state["name"]:
            return Difference(changed=("name",), replaced=("name",))
        changed = tuple(
            key for key in ("run", "image_spec", "launch", "instance_type") if inputs.get(key) != state.get(key)
        )
        _refuse_other_range(state.get("slot_range"), inputs.get("slot_range"))
        if inputs.get("launch"):
            _refuse_other_layout(state.get("layout"), inputs.get("layout"))
        if "launch" in changed and "run" not in changed:
            _refuse_other_launch(state.get("launch") or {}, inputs.get("launch") or {})
        return Difference(changed=changed)

    def create(self, inputs: Properties, place: Place) -> tuple[str, dict[str, Any]]:
        """A new identity; in a preview its id, seed and start are unknown."""
        if place.preview:
            facts: dict[str, Any] = {"cluster_id": UNKNOWN, "started_at": UNKNOWN, "seed": Secret(UNKNOWN)}
            return "", {**_chosen(inputs), **facts}
        self._refuse_without_proof()
        cluster_id = secrets.token_hex(CLUSTER_ID_LENGTH // 2)
        born = {"cluster_id": cluster_id, "started_at": self._now(), "seed": Secret(secrets.token_hex(SEED_BYTES))}
        return cluster_id, {**_chosen(inputs), **born}

    def update(self, state: Properties, inputs: Properties, place: Place) -> dict[str, Any]:
        """The identity with a new run or a new image; all of it is known in a preview too.

        In a preview of a new run `started_at` is the preview's own time.
        """
        if not place.preview:
            self._refuse_without_proof()
        outputs = {**state, "seed": Secret(state["seed"]), "launch": inputs.get("launch")}
        outputs["instance_type"] = inputs.get("instance_type")
        if inputs["run"] != state["run"]:
            outputs |= {"run": inputs["run"], "started_at": self._now()}
        if inputs["image_spec"] != state["image_spec"]:
            outputs |= {"image_spec": inputs["image_spec"], "image_id": inputs["image_candidate"]}
        return outputs

    def delete(self, state: Properties, place: Place) -> None:
        """Nothing: an identity is only in the state."""

    def _now(self) -> str:
        return self.now().replace(microsecond=0).isoformat()

    def _refuse_without_proof(self) -> None:
        """Raises ResourceRefused in a rehearsal until the stand-in for AWS has proved that it is answering."""
        nonce = self.environ.get(NONCE_VARIABLE)
        if nonce and not self.home.proof_file(nonce).exists():
            raise ResourceRefused(
                "this is a rehearsal, but the plugin that answers for aws is not the stand-in: nothing was made"
            )


def _chosen(inputs: Properties) -> dict[str, Any]:
    return {
        "name": inputs["name"],
        "owner": inputs["owner"],
        "image_spec": inputs["image_spec"],
        "image_id": inputs["image_candidate"],
        "zone": inputs["zone_candidate"],
        "run": inputs["run"],
        "launch": inputs.get("launch"),
        "slot_range": inputs.get("slot_range"),
        "instance_type": inputs.get("instance_type"),
        "layout": inputs.get("layout"),
    }


def _refuse_other_launch(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuses before anything else is made: the launch templates and the reservation come after the identity."""
    if changes := launch_changes(before, after):
        raise ResourceRefused(f"{'; '.join(changes)}. Nothing was changed; clusterctl down ends the nodes")


def _refuse_other_range(before: str | None, after: str | None) -> None:
    """Refuses another range: every node would be replaced, at another address."""
    if after is not None and before != after:
        where = before or "a network of the cluster's own"
        raise ResourceRefused(
            f"the nodes' addresses have been in {where} since the cluster's birth, and would be in {after}: run "
            "clusterctl up, which reads them from the state. Nothing was changed"
        )


def _refuse_other_layout(before: float | None, after: float | None) -> None:
    """Refuses another layout: every node would be replaced, with other interfaces."""
    if before != after:
        raise ResourceRefused(
            f"the nodes' interfaces have had layout {before or 1:g} since the cluster's birth, and would have "
            f"{after or 1:g}: run clusterctl up, which reads it from the state. Nothing was changed"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, Unknown) or (isinstance(value, str) and value != "")
