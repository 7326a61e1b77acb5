"""Measurements of clusterctl as whole processes; `scripts/bench` runs them and prints tables."""
