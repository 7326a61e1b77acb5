"""The recipe of the base image: plain data, and the hash that names the image it makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

DISK_FULL = "the disk is full"
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "cloud-init",
    "python3",
    "iproute2",
    "nftables",
    "sudo",
    "ca-certificates",
    "curl",
    "fuse3",
    "bindfs",  # stands for the clients of FSx and EFS
    "s3fs",  # stands for mountpoint-s3, of which there is no Debian package
    "bind9-dnsutils",  # nslookup, which Ubuntu's images have
    "iputils-ping",
    "netcat-openbsd",
    "procps",
    "rsync",  # Ubuntu's images have it, and people copy between nodes with it
    "podman",  # stands for the docker of AWS's images, which wants a daemon and network rules
    "crun",
    "fuse-overlayfs",  # the machine's own root is an overlay, and the kernel stacks no second one on it
    "libnss-myhostname",  # a machine knows its own name without a resolver, as an Ubuntu image does
)

# Units for which a machine without terminals, hardware events or the internet would only wait.
MASKED_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "console-getty.service",
    "getty.target",
    "podman.service",
    "podman.socket",
    "podman-auto-update.service",
    "podman-auto-update.timer",
    "podman-restart.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-networkd-wait-online.service",
    "systemd-journal-flush.service",
    "systemd-timesyncd.service",
)

# These look for disks, terminals, kernel options and old scripts at each boot and each daemon-reload; a container has
# none (systemd.generator(7): a link to /dev/null masks one).
MASKED_GENERATORS = (
    "systemd-bless-boot-generator",
    "systemd-cryptsetup-generator",
    "systemd-debug-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-integritysetup-generator",
    "systemd-rc-local-generator",
    "systemd-run-generator",
    "systemd-system-update-generator",
    "systemd-sysv-generator",
    "systemd-veritysetup-generator",
)

# The cloud-init modules that our user-data uses, those that run its scripts, and the one that logs the end. The other
# 43 in Debian's lists find no boot loader, growing disk, locale or package source here, or are not asked for anything;
# yet each takes time to load. The network is configured from outside; the seed folder is
# the one data source.
CLOUD_INIT_SETTINGS = """\
datasource_list: [NoCloud]
datasource: {NoCloud: {fs_label: null}}
network: {config: disabled}
cloud_init_modules: [write-files, set_hostname, update_hostname, users-groups, ssh]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-user, final-message]
"""

# A node is ready before these stages of cloud-init, which find little to do in our user-data: when several machines
# boot at once, the stages leave the processors to the other machines.
LOW_PRIORITY = "[Service]\nNice=15\n"

# A machine cannot give containers kernel keyrings or cgroups of their own, and has no bridge for them.
CONTAINER_SETTINGS = """\
[containers]
keyring = false
cgroups = "disabled"
netns = "host"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

# With ssh_pwauth in user-data instead, cloud-init restarts sshd after it already answered.
SSHD_SETTINGS = "PasswordAuthentication no\n"

_HERE = Path(__file__).parent
FILES = {
    "etc/cloud/cloud.cfg.d/90_local.cfg": CLOUD_INIT_SETTINGS,
    "etc/containers/containers.conf": CONTAINER_SETTINGS,
    "etc/ssh/sshd_config.d/10-no-passwords.conf": SSHD_SETTINGS,
    "etc/systemd/system/cloud-config.service.d/10-behind.conf": LOW_PRIORITY,
    "etc/systemd/system/cloud-final.service.d/10-behind.conf": LOW_PRIORITY,
    "etc/machine-id": "",
    "etc/resolv.conf": "",  # an unreachable resolver costs ten seconds per look-up
    "etc/hostname": "",
    "usr/bin/cloud-init": (_HERE / "cloud_init_stage.py").read_text(),
    "usr/lib/clusterctl/cloud-init": (_HERE / "cloud_init_start.py").read_text(),
}
"""A file that replaces a package's keeps its mode; a new one that begins with `#!` is executable."""


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """Everything the image depends on; two equal recipes make the same image."""

    suite: str
    architecture: str
    sources: str
    packages: tuple[str, ...] = PACKAGES
    apt_options: tuple[str, ...] = ()
    masked_units: tuple[str, ...] = MASKED_UNITS
    masked_generators: tuple[str, ...] = MASKED_GENERATORS
    files: tuple[tuple[str, str], ...] = tuple(FILES.items())
    removed: tuple[str, ...] = (
        "etc/ssh/ssh_host_*",
        "etc/apt/apt.conf.d/99mmdebstrap",
        "var/lib/dbus/machine-id",
    )
    layout: int = 1

    @property
    def digest(self) -> str:
        """Sixteen hex digits that name the image."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def build_argv(recipe: ImageRecipe, *, target: str, sources_file: str) -> list[str]:
    """The mmdebstrap command, in its own namespaces: it is killed with its caller, and its mounts vanish with it."""
    return [
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--propagation", "private"),
        *("--pid", "--fork", "--kill-child", "--mount-proc"),
        *("mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase"),
        f"--include={','.join(recipe.packages)}",
        *(f"--aptopt={option}" for option in recipe.apt_options),
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        recipe.suite,
        target,
        sources_file,
    ]


def usable_apt_options(dump: str) -> tuple[str, ...]:
    """The lines of `apt-config dump` that decide whether a package source answers."""
    wanted = ("Acquire::Check-", "Acquire::http", "Acquire::https", "Acquire::ForceIPv")
    return tuple(line.rstrip(";") for line in dump.splitlines() if line.startswith(wanted) and not line.endswith('"";'))


def is_sources_text(text: str) -> bool:
    """Whether a file of package sources names at least one."""
    starts: Sequence[str] = ("deb ", "deb [", "URIs:")
    return any(line.lstrip().startswith(tuple(starts)) for line in text.splitlines())


def first_uri(sources: str) -> str:
    """The first package source, for messages."""
    for word in sources.split():
        if "://" in word and not word.startswith("#"):
            return word
    return "(none)"


def failure_reason(log: str, sources: str) -> str:
    """One sentence for a failed build, from what the tool printed."""
    if "No space left on device" in log:
        return DISK_FULL
    signs = (
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Unable to connect",
        "Connection timed out",
        "Network is unreachable",
        "Failed to fetch",
    )
    if any(sign in log for sign in signs):
        return f"the package source {first_uri(sources)} was not reached"
    errors = [line for line in log.splitlines() if line.startswith(("E:", "Err:", "dpkg: error"))]
    return errors[-1] if errors else "mmdebstrap failed"
