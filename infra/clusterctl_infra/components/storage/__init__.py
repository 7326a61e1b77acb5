"""Components of shared storage: one file for each thing that can be behind a mount, and one that wires them."""
