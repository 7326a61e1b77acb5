"""A stand-in for an AWS region: the same stack on this computer, before it costs anything."""
