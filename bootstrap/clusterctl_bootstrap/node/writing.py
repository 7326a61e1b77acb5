"""The files that tell programs on this node what the node is."""

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from clusterctl_bootstrap.node import environment, nccl
from clusterctl_bootstrap.node.facts import FactsError, birth
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.outside import Outside

USER = "ubuntu"
PROFILE = "if [ -r /etc/clusterctl/env ]; then\n  set -a\n  . /etc/clusterctl/env\n  set +a\nfi\n"
HOSTS_BEGIN = "# clusterctl: every node of the cluster"
HOSTS_END = "# clusterctl: end"
ASIDE = "# clusterctl: put aside: "


def write_identity(root: Path, facts: Dict[str, Any]) -> None:
    """Writes node.json, the MPI hostfile in the order of ranks, and every node's name in /etc/hosts."""
    write_atomically(root / "etc/clusterctl/node.json", json.dumps(node_json(facts), indent=1) + "\n")
    counts = environment.processes(facts)
    lines = ["%s-%d slots=%d\n" % (facts["cluster"], slot, counts[slot]) for slot in environment.slots_by_rank(facts)]
    write_atomically(root / "etc/clusterctl/hostfile", "".join(lines))
    hosts = root / "etc/hosts"
    write_atomically(hosts, hosts_text(hosts.read_text() if hosts.exists() else "127.0.0.1 localhost\n", names(facts)))


def write_environment(root: Path, facts: Dict[str, Any], outside: Outside) -> List[str]:
    """Writes the environment for shells, units, containers and SSH commands; returns the names that env.list lacks."""
    if facts.get("is_host"):
        from clusterctl_bootstrap.node.host_network import on_host  # noqa: PLC0415  # user-data has no room for it

        computed = on_host(root, facts, outside)
    else:
        computed = nccl.computed(root, facts)
    rows = environment.variables(facts, computed)
    of_nccl = {row.name for row in computed}
    raw, left_out = environment.render_env_list(rows)
    files = {
        "env": environment.render_env(rows),
        "env.list": raw,
        "nccl.env": environment.render_env([row for row in rows if row.name in of_nccl]),
        "slurm.env": environment.render_env(environment.slurm_variables(facts)),
    }
    for name, text in files.items():
        write_atomically(root / "etc/clusterctl" / name, text)
    write_atomically(root / "etc/profile.d/clusterctl.sh", PROFILE)
    # sshd reads it at each session (PermitUserEnvironment): nothing is restarted when it changes.
    _write_login(root, "environment", raw, outside)
    keys = facts.get("authorized_keys")
    if keys:
        _write_login(root, "authorized_keys", "".join("%s\n" % key for key in keys), outside)
    return left_out


def node_json(facts: Dict[str, Any]) -> Dict[str, Any]:
    """The facts with what follows from them: name and addresses."""
    return dict(
        {key: value for key, value in facts.items() if key != "authorized_keys"},
        name="%s-%d" % (facts["cluster"], facts["slot"]),
        private_ip=environment.address(facts["slot_cidr"], int(facts["slot"])),
        master_addr=environment.address(facts["slot_cidr"], 0),
    )


def names(facts: Dict[str, Any]) -> Dict[str, str]:
    """Name → private address of every node; computed, so that user-data is the same for 2 nodes and 256.

    By slot, and once more by rank under the names that Saturn Cloud's scripts put together.
    """
    cluster, by_rank = facts["cluster"], environment.slots_by_rank(facts)
    slots = {"%s-%d" % (cluster, slot): slot for slot in sorted(by_rank)}
    slots.update(("%s-%d.%s" % (cluster, rank, environment.DOMAIN), slot) for rank, slot in enumerate(by_rank))
    return {name: environment.address(facts["slot_cidr"], slot) for name, slot in slots.items()}


def hosts_text(old: str, names: Dict[str, str]) -> str:
    """/etc/hosts with our block made anew; a loopback line for one of our names (Debian's 127.0.1.1) is put aside."""
    kept: List[str] = []
    is_ours = False
    for line in old.splitlines():
        is_ours = line == HOSTS_BEGIN or (is_ours and line != HOSTS_END)
        own = line[len(ASIDE) :] if line.startswith(ASIDE) else line
        is_loopback = own.startswith("127.") and any(word in names for word in own.split()[1:])
        if not is_ours and line != HOSTS_END:
            kept.append(ASIDE + own if is_loopback else own)
    block = [HOSTS_BEGIN, *("%s %s" % (names[name], name) for name in names), HOSTS_END]
    return "\n".join([*kept, *block, ""])


def _write_login(root: Path, name: str, text: str, outside: Outside) -> None:
    user_id, group_id, home = login_user(root)
    folder = home / ".ssh"
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        outside.own(folder, user_id, group_id)
    write_atomically(folder / name, text, 0o600)
    outside.own(folder / name, user_id, group_id)


def login_user(root: Path) -> Tuple[int, int, Path]:
    """User id, group id and home of the account people log in to. Raises FactsError if cloud-init has not made it."""
    user = birth(root).get("user", USER)
    for line in (root / "etc/passwd").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(":")
        if fields[0] == user and len(fields) == 7:
            return int(fields[2]), int(fields[3]), root / fields[5].lstrip("/")
    raise FactsError("there is no user %s: cloud-init status --long" % user)
