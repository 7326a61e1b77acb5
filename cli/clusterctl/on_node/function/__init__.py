"""The part of a function's job that works on the nodes where the function runs."""
