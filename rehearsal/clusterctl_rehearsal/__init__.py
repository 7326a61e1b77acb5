"""A stand-in region: the same program on one machine, before it costs anything."""
