"""Hosts as tests find them: one package, so that its files share the machines that `net` boots."""
