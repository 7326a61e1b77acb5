"""Jobs: a training started on many nodes at once, watched, explained and ended."""
