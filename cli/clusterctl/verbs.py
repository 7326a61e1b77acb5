"""The verbs of clusterctl and their lines in `clusterctl --help`.

A plain table: a verb's module is loaded only when it is used, so its one-line help stands here.
"""

from __future__ import annotations

VERBS = {
    "init": "Write the folder of a new stack.",
    "plan": "What a stack means: nodes, price, deadline, problems.",
    "up": "Create or update a cluster, and wait until every node is ready.",
    "down": "End a cluster's nodes, or all of it.",
    "forget": "Drop what is known here of a cluster that is gone.",
    "extend": "Move the deadline, earlier or later.",
    "replace": "Remake one node: same name, same address.",
    "status": "What every node does, the cost, the deadline.",
    "cost": "What it has cost, costs now, and will have cost.",
    "reap": "What clusters left in the account; ends it.",
    "prices": "What machines cost, and how old that knowledge is.",
    "capacity": "Capacity blocks that AWS offers, with their price.",
    "nodes": "The nodes of a cluster, asking nobody.",
    "sweep": "Every node's health: GPUs, fabric, disks, versions.",
    "check": "Can the nodes train together? Names, clocks, TCP, disks, GPU memory.",
    "top": "What every GPU does now, live.",
    "logs": "Logs of many nodes, merged by time.",
    "ssh": "Run a command on nodes, or log in to one.",
    "run": "Start a training on many nodes, and watch it.",
    "jobs": "The jobs of a cluster, and how they go.",
    "job": "One job: show, logs, events, attach, wait, cancel, exec, cp.",
    "bundle": "What is known of a cluster and a job, as one archive.",
    "workflow": "Workflows in OSMO's format: groups of tasks on nodes.",
    "forward": "A node's port on this computer: a notebook, TensorBoard.",
    "cp": "Files to nodes and back.",
    "sync": "Folders to nodes and back.",
    "ssh-config": "A block for ~/.ssh/config.",
    "env": "What /etc/clusterctl/env has on a node.",
    "schema": "JSON Schema of cluster.yaml and job.yaml, for editors.",
    "rehearse": "The rehearsed region: list, bill, clean, fault, image.",
    "completion": "Completion for bash, zsh or fish.",
}


def module_of(verb: str) -> str:
    """The module whose attribute `command` is this verb: `clusterctl.commands.ssh_config` for `ssh-config`."""
    return f"clusterctl.commands.{verb.replace('-', '_')}"
