"""The agent on a node: standard library only, run by the node's own Python (3.9 or newer)."""
