"""The command line: a module a command, with one function that imports what it needs."""
