"""Reaching nodes over SSH."""
