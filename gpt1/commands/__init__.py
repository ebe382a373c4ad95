"""The command line: one module per command, with one function that imports what it needs."""
