"""What `make setup` runs, by whatever Python the machine has: standard library only, and the syntax
of Python 3.6, so that an old one too ends with one clear line.
"""
