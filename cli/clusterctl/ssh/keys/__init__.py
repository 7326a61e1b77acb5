"""The keys that open the way to a node, and the files that OpenSSH wants of them."""
