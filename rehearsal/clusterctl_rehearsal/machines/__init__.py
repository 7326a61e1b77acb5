"""Machine drivers: what boots, reaches, disturbs and ends the machines of a rehearsed region."""
