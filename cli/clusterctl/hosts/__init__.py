"""Clusters of existing machines that somebody else owns: makes them nodes over SSH, and gives them back."""
