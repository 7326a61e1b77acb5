"""The simulated package manager of a rehearsal's machines."""
