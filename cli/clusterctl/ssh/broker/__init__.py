"""Keeps connections open between commands, in a process that carries out the later commands."""
