"""The files that turn the host's own root into that of an unprivileged process machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_rehearsal.machines.driver import MachineFile, MachineSpec
from clusterctl_rehearsal.machines.names import LOGIN_USER, LOGIN_USER_ID
from clusterctl_rehearsal.machines.user_data import Unpacked

SSHD_CONFIG = "/etc/ssh/clusterctl_sshd_config"
_HOME = f"/home/{LOGIN_USER}"
_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"

# The one user is the caller; without a group `tty` sshd need not change a terminal's owner.
_PASSWD = f"""\
root:x:0:0:root:/root:/usr/sbin/nologin
{LOGIN_USER}:x:{LOGIN_USER_ID}:{LOGIN_USER_ID}:{LOGIN_USER}:{_HOME}:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = f"""\
root:x:0:
{LOGIN_USER}:x:{LOGIN_USER_ID}:
nogroup:x:65534:
"""
_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"

# An sshd without root knows one user only, has no PAM, and is content with whoever owns the files.
# PermitUserEnvironment lets every session read the node's environment table.
_SSHD = f"""\
Port 22
ListenAddress 0.0.0.0
HostKey {_HOST_KEY}
HostCertificate /etc/ssh/clusterctl/host-certificate
AuthorizedKeysFile {_HOME}/.ssh/authorized_keys /etc/ssh/clusterctl/keys-%u
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitUserEnvironment yes
MaxStartups 100
PrintMotd no
PidFile none
Subsystem sftp internal-sftp
"""

# `sudo -n COMMAND`, as on a real node; its one user already has every right in this machine.
_SUDO = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


def root_files(spec: MachineSpec, unpacked: Unpacked) -> Mapping[str, MachineFile]:
    """Every file placed over the host's root before the machine starts, by absolute path."""
    hosts = f"127.0.0.1 localhost\n{spec.private_ip} {spec.node}\n"
    keys = "".join(f"{key}\n" for key in unpacked.authorized_keys)
    return {
        "/etc/passwd": _text(_PASSWD),
        "/etc/group": _text(_GROUP),
        "/etc/shadow": _text("", 0o600),
        "/etc/nsswitch.conf": _text(_NSSWITCH),
        "/etc/hostname": _text(f"{spec.node}\n"),
        "/etc/hosts": _text(hosts),
        "/etc/resolv.conf": _text(""),
        "/etc/ssh/sshd_config": _text("# not read: see clusterctl_sshd_config\n"),
        SSHD_CONFIG: _text(_SSHD),
        _HOST_KEY: _text(unpacked.host_keys.get("ed25519_private", ""), 0o600),
        f"{_HOST_KEY}.pub": _text(f"{unpacked.host_keys.get('ed25519_public', '')}\n"),
        f"{_HOME}/.ssh/authorized_keys": _text(keys, 0o600),
        "/usr/local/bin/sudo": _text(_SUDO, 0o755),
        # Makes the folder the machine's own: nothing can be put into a folder that only the host has.
        "/etc/profile.d/clusterctl.sh": _text(""),
        f"{_HOME}/.profile": _text('for file in /etc/profile.d/clusterctl*.sh; do\n  . "$file"\ndone\n'),
        **unpacked.files,
        **spec.files,
    }


def _text(text: str, mode: int = 0o644) -> MachineFile:
    return MachineFile(content=text.encode(), mode=mode)
