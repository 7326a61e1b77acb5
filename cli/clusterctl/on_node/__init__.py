"""Programs that are sent to a node and run there: each one file, Python 3.9, standard library only."""
