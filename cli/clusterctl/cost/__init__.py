"""What a cluster costs, from its account and dated prices. Pure."""
