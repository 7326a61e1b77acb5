"""The files on this computer by which a cluster is known, once the cluster is gone."""

from __future__ import annotations

import json
import shutil

from clusterctl.home import Home


def forget_cluster(home: Home, cluster: str, *, cluster_id: str) -> bool:
    """Removes inventory and login key of `cluster`, unless they are another cluster's by now; whether they were its."""
    file = home.inventory_file(cluster)
    try:
        known = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    if not isinstance(known, dict) or known.get("cluster_id") != cluster_id:
        return False
    file.unlink(missing_ok=True)
    shutil.rmtree(home.keys_dir / cluster, ignore_errors=True)
    return True
