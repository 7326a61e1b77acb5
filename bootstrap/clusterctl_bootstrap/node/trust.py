"""The two secrets that the nodes of a cluster share: the login user works with them, nobody else."""

from pathlib import Path

from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.writing import login_user

NODE_KEY = "etc/clusterctl/ssh_key"
BARRIER_SECRET = "etc/clusterctl/barrier"


def hand_over(root: Path, outside: Outside) -> None:
    """Gives them to the login user: cloud-init writes files before it makes users."""
    user_id, group_id, _ = login_user(root)
    for name in (NODE_KEY, BARRIER_SECRET):
        outside.own(root / name, user_id, group_id)
