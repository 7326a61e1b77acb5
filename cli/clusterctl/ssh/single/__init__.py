"""One node: a connection by paramiko, or the system's ssh for a terminal."""
