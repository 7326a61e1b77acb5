"""The files that tell programs on this node what the node is."""

import json
import os
import pwd
from pathlib import Path
from typing import Any, Dict, List

from clusterctl_bootstrap.node import environment
from clusterctl_bootstrap.node.files import replace_block, write_atomically

USER = "ubuntu"


def write_contract(root: Path, facts: Dict[str, Any]) -> List[str]:
    """Writes /etc/clusterctl/* and what makes shells, sshd and the resolver see it; gives remarks for the log."""
    etc = root / "etc/clusterctl"
    rows = environment.variables(facts)
    raw, left_out = environment.render_env_list(rows)
    names = ["%s-%d" % (facts["cluster"], slot) for slot in range(int(facts["nodes"]))]
    write_atomically(etc / "node.json", json.dumps(node_json(facts), indent=1) + "\n")
    write_atomically(etc / "env", environment.render_env(rows))
    write_atomically(etc / "env.list", raw)
    slots = int(facts["gpus_per_node"]) or 1
    write_atomically(etc / "hostfile", "".join("%s slots=%d\n" % (name, slots) for name in names))
    write_atomically(root / "etc/profile.d/clusterctl.sh", "set -a\n. /etc/clusterctl/env\nset +a\n")
    block = "".join(
        "%s %s\n" % (environment.address(facts["slot_cidr"], slot), name) for slot, name in enumerate(names)
    )
    hosts = root / "etc/hosts"
    old = hosts.read_text() if hosts.exists() else "127.0.0.1 localhost\n"
    write_atomically(hosts, replace_block(old, block, "nodes"))
    _write_login(root, raw, facts.get("authorized_keys"))
    return ["left out of env.list, as the value has a newline: %s" % ", ".join(left_out)] if left_out else []


def node_json(facts: Dict[str, Any]) -> Dict[str, Any]:
    """The facts with what follows from them: name and addresses."""
    return dict(
        {key: value for key, value in facts.items() if key != "authorized_keys"},
        name="%s-%d" % (facts["cluster"], facts["slot"]),
        private_ip=environment.address(facts["slot_cidr"], int(facts["slot"])),
        master_addr=environment.address(facts["slot_cidr"], 0),
    )


def _write_login(root: Path, raw_environment: str, keys: Any) -> None:
    """sshd reads ~/.ssh/environment at each session (PermitUserEnvironment): no restart when it changes."""
    try:
        entry = pwd.getpwnam(USER)
    except KeyError:
        return
    folder = root / entry.pw_dir.lstrip("/") / ".ssh"
    if not folder.is_dir():
        return
    files = {"environment": raw_environment}
    if keys:
        files["authorized_keys"] = "".join("%s\n" % key for key in keys)
    for name, text in files.items():
        write_atomically(folder / name, text, 0o600)
        os.chown(str(folder / name), entry.pw_uid, entry.pw_gid)
