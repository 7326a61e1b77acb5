"""One module per verb: flags, help and a call."""
