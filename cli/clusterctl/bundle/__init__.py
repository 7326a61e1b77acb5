"""Packs what is known of a cluster and a job into one archive, for a colleague or an issue."""
