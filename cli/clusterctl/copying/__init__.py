"""Files to nodes and back."""
