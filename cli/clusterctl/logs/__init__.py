"""Logs of many nodes, merged by time."""
