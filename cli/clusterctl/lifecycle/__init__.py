"""A cluster from its first `up` to its `down`: one file for each verb, and what only that verb needs."""
