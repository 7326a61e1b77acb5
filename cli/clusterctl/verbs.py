"""The verbs of clusterctl and their lines in `clusterctl --help`.

A plain table: a verb's module is loaded only when it is used, so its one-line help stands here.
"""

from __future__ import annotations

VERBS = {
    "init": "Write the folder of a new stack.",
    "plan": "What a stack means: nodes, price, deadline, problems.",
    "up": "Create or update a cluster, and wait until every node is ready.",
    "down": "End a cluster's nodes, or all of it.",
    "forget": "Make this computer forget a cluster that is gone.",
    "extend": "Move the deadline, earlier or later.",
    "replace": "Replace one node's machine: same name, same address.",
    "status": "What every node does, the cost, the deadline.",
    "cost": "What a cluster has cost, costs now, and will have cost.",
    "reap": "Find and end what clusters left in the account.",
    "prices": "What machines cost, by list price.",
    "capacity": "Capacity blocks that AWS offers, with their price.",
    "nodes": "The nodes of a cluster; asks nobody.",
    "sweep": "Every node's health: GPUs, fabric, disks, versions.",
    "check": "Can the nodes train together? Names, clocks, TCP, disks, GPUs.",
    "top": "What every GPU does now, live.",
    "logs": "Logs of many nodes, merged by time.",
    "ssh": "Run a command on nodes, or log in to one.",
    "run": "Start a training on many nodes, and watch it.",
    "jobs": "The jobs of a cluster and their states.",
    "job": "One job: show, logs, events, attach, wait, cancel, exec, cp.",
    "bundle": "Pack what is known of a cluster and a job into an archive.",
    "workflow": "Workflows in OSMO's format: groups of tasks on nodes.",
    "forward": "Open a node's port here: a notebook, TensorBoard.",
    "cp": "Copy files to nodes and back.",
    "sync": "Copy folders to nodes and back.",
    "ssh-config": "A block for ~/.ssh/config.",
    "env": "The variables of a node.",
    "schema": "JSON Schema of cluster.yaml and job.yaml, for editors.",
    "rehearse": "The rehearsed region: list, bill, clean, fault, image.",
    "completion": "Completion for bash, zsh or fish.",
}


def module_of(verb: str) -> str:
    """The module whose attribute `command` is this verb: `clusterctl.commands.ssh_config` for `ssh-config`."""
    return f"clusterctl.commands.{verb.replace('-', '_')}"
