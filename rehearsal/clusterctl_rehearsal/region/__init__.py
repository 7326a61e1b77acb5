"""The stand-in region: what exists in it, what it refuses, and the machines behind its instances."""
