"""Other people's tools, each as its documentation shows it: PROGRAM KEY HOSTS PORT FANOUT COMMAND."""
