# The types of what __init__.py loads on use.
from clusterctl.node_group.group import NodeGroup as NodeGroup
from clusterctl.node_group.group import nodes as nodes
