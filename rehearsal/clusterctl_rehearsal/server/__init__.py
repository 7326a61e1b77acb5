"""The process that serves a rehearsed region: its start and end, its HTTP, its private requests."""
