"""Workflows in OSMO's file format: read, checked, and run as jobs."""
