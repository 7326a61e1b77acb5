"""Step Functions, as far as a cluster's own state machine needs it."""
