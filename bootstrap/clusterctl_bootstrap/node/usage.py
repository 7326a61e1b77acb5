"""What each verb of `clusterctl-node` does, for people who ask with --help."""

HELP = {
    "boot": """\
usage: clusterctl-node boot

Makes this machine a node, as root: all phases of a boot.
The machine does so itself at each boot.""",
    "status": """\
usage: clusterctl-node status [--follow]

Prints which phase this node is in, since when, and what failed.
One line of JSON.

  --follow   a line at each change, until the input ends""",
    "apply": """\
usage: clusterctl-node apply < cluster.json

Takes a newer membership, as root; `clusterctl up` sends it.
Prints one line of JSON, and ends with 1 if it is refused.""",
    "barrier": """\
usage: clusterctl-node barrier NAME [--timeout 10m]

Waits until all nodes of the cluster wait at the barrier NAME.
It says every ten seconds who is missing. NAME: letters, digits, . _ and -,
at most 64, the first one no -; it may be used again.

  --timeout 90s|10m|1h   how long to wait (default: 10m)

Exit code: 0 all met, 1 not all came in time, 2 wrong usage,
3 this process may not take part.""",
    "watch": """\
usage: clusterctl-node watch

Warns before the end of this machine, as root; a service does this.
It runs hooks, and sends and hears the beats of the dead man's rule, too.""",
    "idle": """\
usage: clusterctl-node idle

On slot 0: ends the cluster when nobody uses it (caps.idle).
As root; a service does this.""",
    "idle-report": """\
usage: clusterctl-node idle-report SECONDS ADDRESS PORT

Tells slot 0 every so many seconds whether this node is in use.
Slot 0 starts it over SSH, from that address and port.""",
    "version": """\
usage: clusterctl-node version

Prints the version of the agent and of Python, one line of JSON.""",
}


def help_on(verb: str) -> str:
    """The help of a verb; for anything else a list of what each verb does."""
    firsts = ["  %-12s %s" % (name, text.split("\n\n")[1].split("\n")[0]) for name, text in HELP.items()]
    every = ["usage: clusterctl-node VERB", "", *firsts, "", "clusterctl-node VERB --help says more."]
    return HELP.get(verb) or "\n".join(every)
