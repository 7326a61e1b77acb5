"""The check of a host before anything is changed on it: one command over SSH, its parser, and the reasons to refuse
the host.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.hosts_storage import PACKAGES

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

LOOK_S = 30
LEAST_ROOM_KIB = 512 * 1024
"""The agent needs less than a MiB; jobs keep their output and the folder that they were started from beside it."""
MOST_CLOCK_S = 30
"""How far a host's clock may be from this computer's: people compare times in logs, and jobs compare deadlines."""
LATEST_CLOCK_S = 2**63 - 1
"""The latest time that a clock of 64 bits holds."""
LEAST_PYTHON = (3, 9)
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "smb", "smb2", "smb3", "cifs", "lustre", "gpfs", "ceph", "afs", "k-afs", "coda", "panfs", "fhgfs", "v9fs"}
    | {"gfs/gfs2", "ocfs2", "vxfs", "ibrix", "acfs", "snfs", "novell", "vboxsf", "vmhgfs", "prl_fs"}
)
"""As `stat -f -c %T` of GNU coreutils 9.1 names them (src/stat.c, human_fstype)."""
TITLES = {"nfs": "NFS", "lustre": "Lustre"}
NOT_FREE = {
    "mounted": "something is mounted there already; unmount it, take it out of storage:, or mount elsewhere",
    "unit": "systemd has a unit for it, or /etc/fstab a line; remove that, or the entry in storage:",
    "link": "there is a symbolic link in it, and systemd mounts at no link; write the path that readlink -f prints",
    "files": "something lies there, which a mount would hide; move it away, or mount elsewhere",
}
"""What is at a path → why nothing can be mounted there."""
COMMAND = r"""
export LC_ALL=C
say() { printf '%s %s\n' "$1" "$2"; }
say clock "$(date +%s)"
say kernel "$(uname -sr)"
say python "$(/usr/bin/python3 -ISc 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
refusal=$(sudo -n true 2>&1) && say sudo yes || say sudo "no $(printf %s "$refusal" | head -n 1)"
case ":$(sudo -n sh -c 'echo $PATH' 2>/dev/null):" in *:/usr/local/bin:*) say path yes ;; *) say path no ;; esac
[ -d /run/systemd/system ] && say systemd yes || say systemd no
say room "$(df -Pk /var/lib 2>/dev/null | awk 'END { print $4 }')"
grep -qiE '^[[:space:]]*include[[:space:]].*/sshd_config\.d/' /etc/ssh/sshd_config && say sshd yes || say sshd no
grep -qiE '^[[:space:]]*include[[:space:]].*/ssh_config\.d/' /etc/ssh/ssh_config && say ssh yes || say ssh no
birth=/var/lib/clusterctl/birth.json receipt=/var/lib/clusterctl/host.json
for file in $receipt $birth; do
  [ -r $file ] && say cluster "$(sed -n 's/.*"cluster_id": *"\([0-9a-f]*\)".*/\1/p' $file | head -n 1)"
done
sudo -n sh -c 'grep -qihE "^[[:space:]]*PermitUserEnvironment[[:space:]=\"]+no\"?[[:space:]]*\$" \
  /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf' 2>/dev/null && say variables no || say variables yes
say home "$(stat -f -c %T ~ 2>/dev/null)"
if [ -e ~/.ssh/environment ] && ! [ -e $receipt ]; then say environment theirs; else say environment free; fi
for each in $(ip -o addr show 2>/dev/null | awk '$3 ~ /^inet/ { sub("/.*", "", $4); print $4 }'); do
  say address "$each"
done
command -v nvidia-smi >/dev/null && say gpus "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" || say gpus none
for port in /sys/class/infiniband/*/ports/*; do
  [ -r "$port/link_layer" ] || continue
  device=${port#/sys/class/infiniband/}
  guid=$(tr -d : < "/sys/class/infiniband/${device%%/*}/node_guid")
  say ib "${device%%/*}:${port##*/} $(cat "$port/link_layer") $(cut -d' ' -f2 "$port/state") $guid"
done
sudo -n sh -c 'command -v ibnetdiscover' >/dev/null 2>&1 && say ibnetdiscover yes || say ibnetdiscover no
while [ $# -gt 1 ]; do
  place=$1 kind=$2 unit=$(systemd-escape --path --suffix=mount "$1" 2>/dev/null)
  shift 2
  [ -e "/sbin/mount.$kind" ] || say lacks "$kind"
  if grep -qsF "\"$place\"" $receipt; then state=ours
  elif [ "$(readlink -m "$place")" != "$place" ]; then state=link
  elif awk -v place="$place" '$5 == place { found = 1 } END { exit !found }' /proc/self/mountinfo; then state=mounted
  elif [ "$(systemctl show --property=LoadState --value "$unit" 2>/dev/null)" != not-found ]; then state=unit
  elif [ -e "$place" ] && { ! [ -d "$place" ] || [ -n "$(sudo -n ls -A "$place" 2>&1)" ]; }; then state=files
  else state=free; fi
  say place "$state $place"
done
say end yes
"""


@dataclass(frozen=True, kw_only=True)
class HostLook:
    """What one host answered."""

    clock_s: int
    """Seconds since 1970."""
    kernel: str
    python: tuple[int, int] | None
    """The version of /usr/bin/python3; None: there is none."""
    sudo_refusal: str | None
    """What sudo says if it does not work without a password; None: it works."""
    has_local_bin: bool
    """Whether sudo finds programs in /usr/local/bin."""
    has_systemd: bool
    room_kib: int | None
    """The free space below /var/lib."""
    takes_sshd_files: bool
    """Whether sshd_config includes the files of sshd_config.d."""
    takes_ssh_files: bool
    """Whether ssh_config includes the files of ssh_config.d."""
    cluster_id: str | None
    """The id of the cluster whose node it is; None: it is no node."""
    has_own_environment: bool
    """Whether the login user has a ~/.ssh/environment that is not clusterctl's."""
    takes_variables: bool
    """Whether no file of sshd says `PermitUserEnvironment no`. If none says anything, `no` is the default and can be
    changed."""
    home_type: str
    """The type of the file system with the login user's home, as stat names it; empty if it is not known."""
    addresses: tuple[str, ...]
    gpus: int | None
    """How many GPUs nvidia-smi lists; None: a command over SSH finds no nvidia-smi."""
    active_infiniband: tuple[str, ...]
    """`mlx5_0:1`: ports whose link layer is InfiniBand and whose state is ACTIVE."""
    infiniband: tuple[str, ...]
    """All ports whose link layer is InfiniBand."""
    adapters: tuple[str, ...]
    """The node GUIDs of the adapters that have such a port, 16 hex digits each, sorted."""
    has_ibnetdiscover: bool
    """Whether root finds the program that lists an InfiniBand subnet's switches."""
    lacking_clients: tuple[str, ...] = ()
    """The kinds of storage, `nfs` or `lustre`, for which there is no /sbin/mount.KIND."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Path → what is there now: `free`, `ours`, `mounted`, `unit` (of systemd, or in fstab), `link` or `files`."""


def parse_look(text: str) -> HostLook:
    """What `COMMAND` printed, parsed. Raises ProbeUnreadable."""
    rows = [line.partition(" ")[::2] for line in text.splitlines() if line.strip()]
    answers: Mapping[str, str] = dict(rows)
    if answers.get("end") != "yes":
        raise ProbeUnreadable(f"the look at the host was cut short: {first_words(text)}")
    ports = [value.split() for key, value in rows if key == "ib"]
    infiniband = [words for words in ports if len(words) >= 3 and words[1] == "InfiniBand"]
    try:
        return HostLook(
            clock_s=_unix_time(answers["clock"]),
            kernel=answers.get("kernel", ""),
            python=_version(answers.get("python", "")),
            sudo_refusal=None if answers["sudo"] == "yes" else answers["sudo"].removeprefix("no ").strip() or "no sudo",
            has_local_bin=answers["path"] == "yes",
            has_systemd=answers["systemd"] == "yes",
            room_kib=int(answers["room"]) if answers.get("room") else None,
            takes_sshd_files=answers["sshd"] == "yes",
            takes_ssh_files=answers["ssh"] == "yes",
            cluster_id=next((value for key, value in rows if key == "cluster" and value), None),
            has_own_environment=answers["environment"] == "theirs",
            takes_variables=answers["variables"] == "yes",
            home_type=answers.get("home", ""),
            addresses=tuple(value for key, value in rows if key == "address"),
            gpus=None if answers["gpus"] == "none" else int(answers["gpus"]),
            active_infiniband=tuple(words[0] for words in infiniband if words[2] == "ACTIVE"),
            infiniband=tuple(words[0] for words in infiniband),
            adapters=tuple(sorted({words[3].lower() for words in infiniband if len(words) == 4})),
            has_ibnetdiscover=answers.get("ibnetdiscover") == "yes",
            lacking_clients=tuple(sorted({value for key, value in rows if key == "lacks"})),
            places={path: state for key, value in rows if key == "place" for state, _, path in [value.partition(" ")]},
        )
    except (KeyError, ValueError) as e:
        raise ProbeUnreadable(f"the look at the host cannot be read ({e}): {first_words(text)}") from e


def _unix_time(text: str) -> int:
    """The text as Unix time. Raises ValueError, also for a number that no clock holds."""
    seconds = int(text)
    if abs(seconds) > LATEST_CLOCK_S:
        raise ValueError(f"a time that no clock shows: {first_words(text)}")
    return seconds


def _version(text: str) -> tuple[int, int] | None:
    """`3.11` as (3, 11); None for an empty text. Raises ValueError."""
    if not text:
        return None
    major, minor = text.split(".")
    return int(major), int(minor)


LOOK = Probe(name="host", meaning="what a node needs of a host", command=COMMAND, limit_s=LOOK_S, parse=parse_look)


def hindrances(
    look: HostLook, config: HostsConfig, slot: int, *, cluster_id: str, began_s: float, ended_s: float
) -> list[str]:
    """Why this host cannot be node `slot`, a sentence for each reason; empty if it can. Pure.

    `began_s`, `ended_s`: the Unix times, by this computer's clock, between which the host was looked at.
    """
    return [
        *_unmet_needs(look),
        *_taken(look, cluster_id),
        *_wrong_clock(look.clock_s, began_s, ended_s),
        *_not_as_declared(look, config, slot),
        *_unmountable(look, config),
    ]


def look_command(config: HostsConfig) -> str:
    """The command line of the look, which also looks at each mount that cluster.yaml has."""
    storage = [word for row in config.storage for word in (row.mount, row.kind)]
    return f"exec {shlex.join(['sh', '-c', COMMAND, 'look', *storage])}"


def _unmet_needs(look: HostLook) -> list[str]:
    found = []
    least = ".".join(map(str, LEAST_PYTHON))
    if look.python is None:
        found.append(f"there is no /usr/bin/python3, and the agent needs Python {least} or newer: install python3")
    elif look.python < LEAST_PYTHON:
        found.append(f"/usr/bin/python3 is Python {look.python[0]}.{look.python[1]}, the agent needs {least} or newer")
    if look.sudo_refusal is not None:
        found.append(f"sudo -n true is refused ({look.sudo_refusal}): the user needs sudo without a password")
    elif not look.has_local_bin:
        found.append("sudo does not look in /usr/local/bin: add it to secure_path, by visudo")
    if not look.has_systemd:
        found.append("systemd does not run there, and the agent is a unit of it")
    if look.room_kib is not None and look.room_kib < LEAST_ROOM_KIB:
        found.append(f"/var/lib has {look.room_kib // 1024} MiB free, {LEAST_ROOM_KIB // 1024} are needed")
    for takes, name in ((look.takes_sshd_files, "sshd_config"), (look.takes_ssh_files, "ssh_config")):
        if not takes:
            found.append(f"/etc/ssh/{name} does not include /etc/ssh/{name}.d/*.conf: add that line at its beginning")
    if not look.takes_variables:
        found.append("sshd's files say PermitUserEnvironment no, and nodes need yes for some names: remove that line")
    if look.home_type in NETWORK_FILE_SYSTEMS:
        home = f"the user's home is on a network file system ({look.home_type})"
        found.append(f"{home}, and each node writes its own ~/.ssh/environment: choose a user with a home on the host")
    return found


def _taken(look: HostLook, cluster_id: str) -> list[str]:
    if look.cluster_id not in (None, cluster_id):
        ways = "clusterctl down where that was made, or docs/hosts.md, which says how to remove it by hand"
        return [f"it is a node of another cluster (id {look.cluster_id}): {ways}"]
    if look.has_own_environment:
        return ["the user has a ~/.ssh/environment: move its variables to env: in cluster.yaml, and it away"]
    return []


def _wrong_clock(clock_s: int, began_s: float, ended_s: float) -> list[str]:
    # Hosts are looked at in parallel, so each answered at an unknown moment between these two times.
    wrong_by = clock_s - min(max(clock_s, began_s), ended_s)
    if abs(wrong_by) <= MOST_CLOCK_S:
        return []
    way = "ahead of" if wrong_by > 0 else "behind"
    return [f"its clock is {abs(wrong_by):.0f} s {way} this computer's: timedatectl set-ntp true, on both"]


def _not_as_declared(look: HostLook, config: HostsConfig, slot: int) -> list[str]:
    found = []
    address = config.private_ips[slot]
    if look.addresses and address not in look.addresses:
        has = ", ".join(each for each in look.addresses if not each.startswith(("127.", "::1", "fe80:"))) or "none"
        found.append(f"no interface has the address {address}, the host has {has}: write private_ip")
    if config.gpus_per_node and look.gpus is None:
        helps = "link it into /usr/local/bin, or install the driver"
        found.append(f"there is no nvidia-smi in the PATH of commands over SSH, and cluster.yaml has GPUs: {helps}")
    elif config.gpus_per_node and look.gpus != config.gpus_per_node:
        found.append(f"nvidia-smi -L lists {look.gpus} GPUs, cluster.yaml says {config.gpus_per_node}")
    if config.fabric == "infiniband" and not look.active_infiniband:
        seen = f"none of {', '.join(look.infiniband)} is ACTIVE" if look.infiniband else "there is no InfiniBand port"
        found.append(f"fabric: infiniband, and {seen}: ibstat")
    return found


def _unmountable(look: HostLook, config: HostsConfig) -> list[str]:
    kinds = {row.mount: row.kind for row in config.storage}
    found = [f"{path}: {NOT_FREE[state]}" for path, state in look.places.items() if state in NOT_FREE]
    if config.packages or any(script.at == "before-mounts" for script in config.scripts):
        return found  # these may install the client
    for kind in look.lacking_clients:
        paths = ", ".join(path for path, each in kinds.items() if each == kind)
        helps = f"install it, or list it under packages: ({PACKAGES[kind]})"
        found.append(f"{paths}: there is no /sbin/mount.{kind}, the client of {TITLES[kind]}: {helps}")
    return found
