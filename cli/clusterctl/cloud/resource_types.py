"""The one table of what a cluster is made of in AWS: how each kind is found by tag, ended, and what it bills.

`down`, `reap` and the repair after a killed run use it; its order is that in which things are ended.
"""

from __future__ import annotations

from clusterctl.cloud.deadline_resources import DEADLINE_KINDS
from clusterctl.cloud.machine_resources import MACHINE_KINDS
from clusterctl.cloud.network_resources import NETWORK_KINDS
from clusterctl.cloud.permission_resources import PERMISSION_KINDS
from clusterctl.cloud.storage_resources import STORAGE_KINDS

KINDS = (*MACHINE_KINDS, *STORAGE_KINDS, *NETWORK_KINDS, *DEADLINE_KINDS, *PERMISSION_KINDS)
