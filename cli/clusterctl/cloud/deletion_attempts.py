"""What AWS was asked to end, and its last word on each thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from clusterctl_infra.errors import CloudError

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.look import NotListed
from clusterctl.cloud.refusal import code_of
from clusterctl.cloud.resource import CloudResource, ResourceType, type_of

FORGIVEN = ("NotFound", "NoSuchEntity", "Malformed")
"""Words in the codes of refusals that mean that the thing does not exist."""
HOPELESS = ("Unauthorized", "AccessDenied", "OperationNotPermitted")
"""Words in the codes of refusals that waiting does not change: a right is missing, or the machine is protected against
being ended."""
REHEARSAL_PAUSE_S = 0.2
AWS_PAUSE_S = 3.0
Key = tuple[str, str]
Agreed = Callable[[CloudResource], None]
"""Called with each thing that AWS agreed to end."""


def key_of(resource: CloudResource) -> Key:
    """What tells a thing from all others."""
    return resource.kind, resource.id


def pause_s(clients: Clients) -> float:
    """The seconds between two rounds: what is being ended takes its time to go."""
    return REHEARSAL_PAUSE_S if clients.is_rehearsal else AWS_PAUSE_S


def nobody_asks(resource: CloudResource) -> None:
    """An `Agreed` that does nothing, for callers who need not know what AWS agreed to end."""


class DeletionAttempts:
    """All that AWS was asked to end for one cluster, round after round."""

    def __init__(self, clients: Clients, cluster_id: str, kinds: Sequence[ResourceType]) -> None:
        self._clients = clients
        self._cluster_id = cluster_id
        self._kinds = kinds
        self._asked: dict[Key, CloudResource] = {}
        self._of_last_round: set[Key] = set()
        self._refusals: dict[Key, str] = {}

    @property
    def refusals(self) -> Mapping[Key, str]:
        """AWS's last code for each thing that it refused to end."""
        return dict(self._refusals)

    def is_new(self, resource: CloudResource) -> bool:
        """Whether the last round did not have this thing, or only an earlier one with its name."""
        return key_of(resource) not in self._of_last_round

    def were_asked(self, things: Sequence[CloudResource]) -> bool:
        """Whether the end of each was asked for at least once."""
        return all(key_of(resource) in self._asked for resource in things)

    def are_hopeless(self, things: Sequence[CloudResource], unknown: Sequence[CloudError]) -> bool:
        """Whether waiting is useless: AWS refuses for good to end each of these things, and to list the unknown kinds.

        `unknown`: the error for each kind that AWS does not list.
        """
        codes = [*(self._refusals.get(key_of(resource)) for resource in things), *(refusal.code for refusal in unknown)]
        return all(code is not None and any(word in code for word in HOPELESS) for code in codes)

    def gone(self, rest: Sequence[CloudResource], not_listed: NotListed) -> tuple[CloudResource, ...]:
        """Things that AWS was asked to end and that are gone; without those of kinds that AWS no longer lists, about
        which nobody knows.
        """
        present = {key_of(resource) for resource in rest}
        asked = [resource for key, resource in self._asked.items() if key not in present]
        return tuple(resource for resource in asked if type_of(resource, self._kinds).name not in not_listed)

    def end(self, things: Sequence[CloudResource], *, tell: Callable[[str], None], agreed: Agreed) -> None:
        """One round: asks AWS to end each of these."""
        for resource in things:
            key = key_of(resource)
            if key not in self._asked:
                tell(f"{resource.kind} {resource.id}")
            code = self._end(resource, agreed)
            if code is None:
                self._refusals.pop(key, None)
            else:
                self._refusals[key] = code
            self._asked[key] = resource
        # A thing that is named after the cluster, as its role is, and is back after AWS agreed to end it, is a new one.
        keys = {key_of(resource) for resource in things if self._cluster_id not in resource.id}
        self._of_last_round = keys | {key_of(resource) for resource in things if key_of(resource) in self._refusals}

    def _end(self, resource: CloudResource, agreed: Agreed) -> str | None:
        """AWS's code if it refused, such as DependencyViolation while an instance is still ending; None if it agreed,
        or the thing is gone already.

        A missing answer counts as a refusal, too: the next look shows what became of the thing, or that AWS is silent.
        """
        try:
            type_of(resource, self._kinds).delete(self._clients, resource)
        except (BotoCoreError, ResponseParserError) as e:
            return type(e).__name__
        except ClientError as e:
            code = code_of(e)
            return None if any(word in code for word in FORGIVEN) else code
        agreed(resource)
        return None
