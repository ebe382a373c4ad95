"""`python -m gpt1.sources` asks every address and pin of what can be downloaded for its size."""

from itertools import repeat

from gpt1.sources.addresses import BOOK_SETS, DOWNLOADS, book_files
from gpt1.sources.download import ask_all

books = {name: book_files(name, "main", row[-1]) for name, row in BOOK_SETS.items()}
ask_all(DOWNLOADS | books, repeat("docs/tasks.md"))
