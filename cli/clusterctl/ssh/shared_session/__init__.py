"""One Session Manager session for all private nodes: to one of them, and from there on to the others."""
