"""What runs on nodes for a workflow: standard library only."""
