"""The command line of clusterctl."""
