"""What a cluster costs, from its account, what AWS said of its machines and reservations, and dated prices."""
