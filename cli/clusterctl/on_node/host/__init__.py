"""What runs on machines that are somebody else's, for a bare Python 3.9."""
