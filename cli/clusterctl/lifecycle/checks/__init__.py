"""Checks before a change: one table, in the order in which they run."""
