"""The two secrets that the nodes of a cluster share: only the login user works with them."""

from pathlib import Path

from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.writing import login_user

NODE_KEY = "etc/clusterctl/ssh_key"
BARRIER_SECRET = "etc/clusterctl/barrier"


def hand_over(root: Path, outside: Outside) -> None:
    """Gives the two files to the login user, as cloud-init writes files before it makes users. Raises FactsError."""
    user_id, group_id, _ = login_user(root)
    for name in (NODE_KEY, BARRIER_SECRET):
        outside.own(root / name, user_id, group_id)
