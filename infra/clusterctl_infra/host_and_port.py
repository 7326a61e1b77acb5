"""Ports, and an address with a port as people and programs write it. Pure, standard library only."""

SSH_PORT = 22
"""The usual port of an SSH server."""
HIGHEST_PORT = 65535


def place(host: str, port: int) -> str:
    """`10.1.0.5` at SSH's usual port, else as `joined`."""
    return host if port == SSH_PORT else joined(host, port)


def joined(host: str, port: int) -> str:
    """`10.1.0.5:2222`, and `[fd00::5]:2222` (RFC 3986, 3.2.2)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
