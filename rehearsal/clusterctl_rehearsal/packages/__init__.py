"""Stand-ins for the package manager and its servers in a rehearsal's machines."""
