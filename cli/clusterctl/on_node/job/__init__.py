"""The part of `clusterctl run` that works on nodes: Python 3.9, standard library only, sent as one zip archive."""
