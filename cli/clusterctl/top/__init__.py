"""The live view: what every node and GPU does now."""
