"""Words and figures as people read and type them: quantities, moments, tables, node sets, the next command."""
