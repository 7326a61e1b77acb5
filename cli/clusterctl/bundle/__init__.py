"""One archive of what is known of a cluster and a job, for a colleague or an issue."""
