"""What a cluster costs, from its ledger, what AWS said of its machines and reservations, and dated prices."""
