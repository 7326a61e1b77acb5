"""Functions of Python programs that run on a cluster's nodes."""
