"""What the command line asks AWS, or the rehearsed region, directly."""
