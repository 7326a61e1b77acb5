"""cluster.yaml with `target: hosts` → HostsConfig with every host's key, or one ConfigError with every problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from clusterctl_infra.config.document import Tree, read_document
from clusterctl_infra.config.hooks import repeated_names, with_texts
from clusterctl_infra.config.hosts import HostConfig, HostsConfig, is_ip, misplaced_keys
from clusterctl_infra.config.hosts_storage import storage_problems
from clusterctl_infra.config.known_hosts import host_key_in
from clusterctl_infra.config.load import config_error, login_name, read_text
from clusterctl_infra.config.problems import ConfigProblem, problems_of, shown
from clusterctl_infra.config.ssh_keys import check_public_key
from clusterctl_infra.host_and_port import SSH_PORT, place

KNOWN_HOSTS_BYTES = 4 * 1024 * 1024


def load_hosts(file: Path, *, source: str) -> HostsConfig:
    """The configuration, with an owner, and with a host key for every host. Raises ConfigError with all problems."""
    read = read_document(read_text(file, source))
    problems = [ConfigProblem(path=each.path, message=each.message, line=each.line) for each in read.problems]
    if not isinstance(read.tree, dict):
        raise config_error(source, problems or [ConfigProblem(path=(), message="not a mapping")], read, {})
    misplaced = misplaced_keys(read.tree)
    problems += [ConfigProblem(path=path, message=message) for path, message in misplaced.items()]
    config = None
    try:
        config = HostsConfig.model_validate(_without(read.tree, misplaced))
    except ValidationError as e:
        problems += problems_of(e, HostsConfig)
    if config is not None:
        config, more = with_host_keys(config, file.parent)
        config, unread = _with_scripts(config, file.parent)
        problems += [*more, *unread, *_contradictions(config), *_missing_key_file(config, file.parent)]
    if config is None or problems:
        raise config_error(source, problems, read, {})
    return config if config.owner is not None else config.model_copy(update={"owner": login_name()})


def with_host_keys(config: HostsConfig, folder: Path) -> tuple[HostsConfig, list[ConfigProblem]]:
    """The configuration with the keys that its known_hosts file declares, and the problems with these keys."""
    if all(host.host_key is not None for host in config.hosts):
        return config, []
    text, problem = _known_hosts(config, folder)
    if problem is not None:
        return config, [problem]
    hosts, problems = [], []
    for index, host in enumerate(config.hosts):
        key = host.host_key or host_key_in(text, host.address, host.port)
        if key is None:
            problems.append(ConfigProblem(path=("hosts", index), message=_undeclared(host, config)))
            continue
        try:
            hosts.append(host.model_copy(update={"host_key": check_public_key(key)}))
        except ValueError as e:
            problems.append(ConfigProblem(path=("ssh", "known_hosts"), message=f"{host.address}: {e}"))
    if problems:
        return config, problems
    return config.model_copy(update={"hosts": tuple(hosts)}), []


def _with_scripts(config: HostsConfig, folder: Path) -> tuple[HostsConfig, list[ConfigProblem]]:
    """The configuration with its scripts read, and what is wrong with them."""
    scripts, unread = with_texts(config.scripts, folder)
    wrong = [*unread, *repeated_names(config.scripts)]
    problems = [ConfigProblem(path=("scripts", index), message=message) for index, message in wrong]
    return config.model_copy(update={"scripts": scripts}), problems


def _missing_key_file(config: HostsConfig, folder: Path) -> Iterator[ConfigProblem]:
    named = config.ssh.key_file
    try:
        if named is None or (folder / Path(named).expanduser()).is_file():
            return
        why = "no such file"
    except (OSError, RuntimeError, ValueError) as e:
        why = str(getattr(e, "strerror", None) or e)
    yield ConfigProblem(path=("ssh", "key_file"), message=f"{shown(named)}: {why}")


def _known_hosts(config: HostsConfig, folder: Path) -> tuple[str, ConfigProblem | None]:
    """The text of the known_hosts file, empty if the configuration names none; and the problem of one that cannot be
    read.
    """
    named = config.ssh.known_hosts
    if named is None:
        return "", None
    try:
        file = (folder / Path(named).expanduser()).resolve()
        with file.open("rb") as opened:
            data = opened.read(KNOWN_HOSTS_BYTES)
    except (OSError, RuntimeError, ValueError) as e:
        why = getattr(e, "strerror", None) or e
        return "", ConfigProblem(path=("ssh", "known_hosts"), message=f"{shown(named)}: cannot be read: {why}")
    return data.decode("utf-8", "replace"), None


def _undeclared(host: HostConfig, config: HostsConfig) -> str:
    where = "no host_key is declared" if config.ssh.known_hosts is None else "ssh.known_hosts has no key of it"
    scan = "ssh-keyscan" if host.port == SSH_PORT else f"ssh-keyscan -p {host.port}"
    return (
        f"{place(host.address, host.port)}: {where}, and clusterctl trusts no key on first use: write "
        f"host_key, from what {scan} -t ed25519 {host.address} prints once you have compared it with the host's own"
    )


def _contradictions(config: HostsConfig) -> Iterator[ConfigProblem]:
    for path, message in storage_problems(config.storage):
        yield ConfigProblem(path=path, message=message)
    if not config.hosts:
        yield ConfigProblem(path=("hosts",), message="an empty list; a cluster has at least 1 host")
    for index, host in enumerate(config.hosts):
        if host.private_ip is None and not is_ip(host.address):
            message = f"{shown(host.address)}: a name, so write private_ip: the address by which the others reach it"
            yield ConfigProblem(path=("hosts", index, "address"), message=message)
    if len({":" in address for address in config.private_ips if is_ip(address)}) > 1:
        message = "some hosts reach each other by IPv4 and some by IPv6; write private_ip, of one family"
        yield ConfigProblem(path=("hosts",), message=message)
    # Cloned machines share one host key: nobody could tell which of them is a node, or is clean.
    keys = [" ".join((host.host_key or "").split()[:2]) for host in config.hosts]
    addresses = [place(host.address, host.port) for host in config.hosts]
    for name, values in (("address", addresses), ("private_ip", [*config.private_ips]), ("host key", keys)):
        for value, number in Counter(values).items():
            if number > 1 and value:
                index = len(values) - 1 - values[::-1].index(value)
                message = f"{shown(value)}: {number} hosts have it as their {name}"
                yield ConfigProblem(path=("hosts", index), message=message)


def _without(tree: dict[str, Tree], misplaced: dict[tuple[str, ...], str]) -> dict[str, Tree]:
    """The tree without the misplaced keys, which are reported already."""
    kept = {key: value for key, value in tree.items() if (key,) not in misplaced}
    caps = kept.get("caps")
    if isinstance(caps, dict):
        kept["caps"] = {key: value for key, value in caps.items() if ("caps", key) not in misplaced}
    return kept
