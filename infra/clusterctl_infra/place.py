"""An address with a port, as people and programs write it. Pure, standard library only."""


def place(host: str, port: int, *, usual: int = 22) -> str:
    """`10.1.0.5` at the usual port, else as `joined`."""
    return host if port == usual else joined(host, port)


def joined(host: str, port: int) -> str:
    """`10.1.0.5:2222`, and `[fd00::5]:2222` (RFC 3986, 3.2.2)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
