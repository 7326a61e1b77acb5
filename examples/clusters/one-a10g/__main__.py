"""The cluster of cluster.yaml, on AWS."""

from pathlib import Path

import pulumi
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.components.stack import load_stack

config, settings = load_stack(Path(__file__).parent)
cluster = Cluster(config.name, ClusterArgs(config=config, settings=settings))
pulumi.export("inventory", cluster.inventory)
