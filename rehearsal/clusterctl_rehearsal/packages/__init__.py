"""What stands for the package manager in a rehearsal's machines."""
