"""Finding what clusters left in an account, judging what may end, ending it."""
