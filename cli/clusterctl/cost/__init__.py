"""What a cluster costs, from its account, what AWS said of its machines, and dated prices."""
