"""The keys with which people log in to nodes, and the files that OpenSSH needs for that."""
