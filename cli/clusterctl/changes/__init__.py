"""What every change of a stack goes through: what is wanted, what is there, the question, the engine, the nodes."""
