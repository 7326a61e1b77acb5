"""Many nodes at once: libssh2 sessions on event loops."""
