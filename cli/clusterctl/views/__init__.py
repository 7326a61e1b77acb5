"""What commands show: pure functions from data to text."""
