"""Programs that are sent to nodes and run there: Python 3.9, standard library only."""
