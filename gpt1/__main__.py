"""`python -m gpt1` is `gpt1`."""

from gpt1.cli import main

main()
