"""`clusterctl plan` of `target: hosts`: shows what the file means, as text or JSON. No host is asked."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl_bootstrap.host_files import names_kept_from_ssh
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.hosts_storage import HostStorageConfig
from clusterctl_infra.host_and_port import SSH_PORT, place
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.hosts.folder import HostsFolder
from clusterctl.hosts.meaning import hosts_inventory
from clusterctl.hosts.record import new_record, read_record, wanted_record
from clusterctl.output import Output
from clusterctl.text.headline import advice, hardware
from clusterctl.text.quantities import usd
from clusterctl.text.table import render_table


def plan_hosts(folder: HostsFolder, output: Output, home: Home, *, as_json: bool) -> None:
    """Shows the plan of the folder's file. Raises ConfigError with all problems."""
    config, now = folder.config(), datetime.now(UTC)
    record = read_record(config.name, home)
    planned = wanted_record(config, new_record(config, now=now) if record is None else record)
    inventory = hosts_inventory(config, planned, folder=folder.path)
    if as_json:
        output.json(hosts_plan_json(config, inventory))
    else:
        output.data(hosts_plan_text(config, inventory, now=now))


def hosts_plan_text(config: HostsConfig, inventory: Inventory, *, now: datetime) -> str:
    """The whole plan as text: nodes, their machines, what is done on them, the price, and when use should end. Pure."""
    rows = [
        [node.name, str(node.rank), _place(node), node.private_ip, _key(node.host_public_key)]
        for node in inventory.nodes
    ]
    table = render_table(["node", "rank", "host", "private ip", "host key"], rows, right={"rank"})
    return "\n".join([*plan_lines(inventory), table, *work_lines(config), *advice_lines(inventory, now)])


def plan_lines(inventory: Inventory) -> list[str]:
    """The plan's first line: `lab@hosts · 2 × host · 16 × H100 · $12.00/h · nothing ends these hosts`."""
    price = "cost unknown" if inventory.usd_per_hour is None else f"{usd(inventory.usd_per_hour)}/h"
    return [f"{inventory.cluster} · {hardware(inventory)} · {price} · nothing ends these hosts"]


def work_lines(config: HostsConfig) -> list[str]:
    """What is mounted, installed and run on each host, and what of it `down` leaves; then the warnings. Pure."""
    facts = [("mounts", f"{row.mount}: {row.kind} of {row.behind.source}{_read_only(row)}") for row in config.storage]
    if config.packages:
        facts.append(("packages", f"{', '.join(config.packages)}; down leaves them installed"))
    if config.scripts:
        names = ", ".join(script.run for script in config.scripts)
        facts.append(("scripts", f"{names}, as root; down undoes nothing that they did"))
    facts += [("warning", text) for text in warnings(config)]
    return [f"  {name:<8} {value}" for name, value in facts]


def warnings(config: HostsConfig) -> list[str]:
    """What a person may not expect of the configuration. Pure."""
    names = names_kept_from_ssh(config.env)
    message = "env: commands over SSH go without"
    return [f"{message} {', '.join(names)}, which change what is run; login shells and jobs have them"] if names else []


def advice_lines(inventory: Inventory, now: datetime) -> list[str]:
    """The lines below the plan's: until when the hosts are meant to be used, since nothing ends them."""
    return [f"  {line}" for line in advice(inventory, now)]


def hosts_plan_json(config: HostsConfig, inventory: Inventory) -> dict[str, object]:
    """What `clusterctl plan --json` prints for hosts."""
    return {
        "target": "hosts",
        "cluster": inventory.cluster,
        "gpus_per_node": inventory.gpus_per_node,
        "usd_per_hour": inventory.usd_per_hour,
        "deadline": None,
        "advisory_end": inventory.advisory_end,
        "storage": [
            {"mount": row.mount, "kind": row.kind, "source": row.behind.source, "writable": row.behind.writable}
            for row in config.storage
        ],
        "packages": list(config.packages),
        "scripts": [script.run for script in config.scripts],
        "warnings": warnings(config),
        "nodes": [
            {
                "slot": node.slot,
                "rank": node.rank,
                "name": node.name,
                "address": node.public_ip,
                "port": node.port or SSH_PORT,
                "private_ip": node.private_ip,
                "host_key": node.host_public_key,
            }
            for node in inventory.nodes
        ],
    }


def _place(node: InventoryNode) -> str:
    return place(node.public_ip or "", node.port or SSH_PORT)


def _read_only(row: HostStorageConfig) -> str:
    return "" if row.behind.writable else ", read-only"


def _key(line: str) -> str:
    """A host key shortened to `ssh-ed25519 …` and its last eight characters, enough to tell two keys apart."""
    kind, _, text = line.partition(" ")
    return f"{kind} …{text[-8:]}"
