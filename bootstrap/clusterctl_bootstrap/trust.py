"""What lets the nodes of a cluster reach each other without questions, as files of the cloud-config.

Everything here is the same for 2 nodes and for 256: one authority signs each node's host key, one key opens all.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from clusterctl_bootstrap.node_plan import NodeAccess, NodePlan

NODE_KEY = "/etc/clusterctl/ssh_key"
BARRIER_SECRET = "/etc/clusterctl/barrier"
HOST_CERTIFICATE = "/etc/ssh/clusterctl/host-certificate"
"""Not beside the host key: cloud-init removes every /etc/ssh/ssh_host_*key* when it writes that one."""
# Only the login user's keys-%u file exists, so it does not let root in. When all nodes connect to one at the same time
# for its files, sshd's default limit (10:30:100; sshd_config(5), 2026-11) turns some away at random.
SSHD_LINES = (
    f"HostCertificate {HOST_CERTIFICATE}\nAuthorizedKeysFile .ssh/authorized_keys /etc/ssh/clusterctl/keys-%u\n"
    "MaxStartups 1000\n"
)
IDENTITIES = "".join(f"IdentityFile {file}\n" for file in (NODE_KEY, "~/.ssh/id_ed25519", "~/.ssh/id_rsa"))
"""Once a key is named, ssh looks for no other: people's usual keys are named, too, for other machines at such
addresses."""


def trust_files(node: NodePlan, access: NodeAccess) -> list[dict[str, str]]:
    """Entries of write_files; the two secrets are root's until the agent gives them to the login user."""
    trust = access.trust
    names, addresses = f"{node.cluster}-*", address_pattern(node.slot_cidr)
    # Another key under a node's name is refused without a question; other names and addresses may be somebody else's.
    ours = " ".join(f"{node.cluster}-{digits}" for digits in ("?", "??", "???"))
    client = f"Host {names} {addresses}\n{IDENTITIES}Host {ours}\nStrictHostKeyChecking yes\n"
    authority = f"@cert-authority {names},{addresses} {trust.host_authority}\n"
    return [
        _file(NODE_KEY, trust.node_private_key, "0600"),
        _file(BARRIER_SECRET, f"{trust.barrier_secret}\n", "0600"),
        _file(HOST_CERTIFICATE, f"{trust.host_certificate}\n"),
        _file(f"/etc/ssh/clusterctl/keys-{access.user}", f'from="{node.slot_cidr}" {trust.node_public_key}\n'),
        _file("/etc/ssh/ssh_known_hosts", authority),
        _file("/etc/ssh/ssh_config.d/clusterctl.conf", client),
    ]


def address_pattern(slot_cidr: str) -> str:
    """The range as OpenSSH's patterns can express it: by its whole octets, `10.0.*` for 10.0.8.0/21.

    Wider than the range does no harm: the authority vouches for the address that a certificate names, no other.
    """
    network = IPv4Network(slot_cidr)
    octets = str(network.network_address).split(".")[: network.prefixlen // 8]
    return ".".join([*octets, "*"]) if len(octets) < 4 else ".".join(octets)


def _file(path: str, content: str, permissions: str = "0644") -> dict[str, str]:
    return {"path": path, "permissions": permissions, "content": content}
