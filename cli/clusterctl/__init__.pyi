from clusterctl_infra.errors import RemoteError as RemoteError

from clusterctl.functions.app import App as App
from clusterctl.functions.app import RemoteFunction as RemoteFunction
from clusterctl.functions.task import Task as Task
from clusterctl.functions.task import get_task as get_task
from clusterctl.node_group.group import NodeGroup as NodeGroup
from clusterctl.node_group.group import nodes as nodes
