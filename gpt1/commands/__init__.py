"""What stands on the command line: a module a command, one function each, which imports what it
needs when it is called.
"""
