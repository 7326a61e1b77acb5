"""Existing machines, which are somebody else's, as nodes of a cluster: made so over SSH, and given back."""
