"""Documents into token files: a long one is a book of its own; short ones follow one another in
runs, for windows lie inside books and most would be shorter than a window.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.books import HoldOut, document_name
from gpt1.corpus.shards import SplitWriter

# of a document that is a book of its own: a window that crosses two documents is rare in longer
# ones
LONG_WORDS = 10_000


class Joiner:
    """Puts the documents of one file, in order, into the token files of the splits that they belong
    to.
    """

    def __init__(
        self,
        name: str,
        writers: Mapping[str, SplitWriter],
        hold_out: HoldOut,
        line_end: NDArray[np.unsignedinteger],
    ) -> None:
        self.name, self.writers, self.hold_out, self.line_end = name, writers, hold_out, line_end
        self.ids: list[NDArray[np.unsignedinteger]] = []
        self.words = 0
        self.first: dict[str, int | None] = dict.fromkeys(
            writers
        )  # row of the first document of the run that is open

    def add(self, row: int, ids: NDArray[np.unsignedinteger], words: int, ended: bool) -> None:
        """Go on with the document of that row, and end it."""
        self.ids.append(ids)
        self.words += words
        if ended:
            if self.words:
                self._put(row)
            self.ids, self.words = [], 0

    def _put(self, row: int) -> None:
        split = "heldout" if self.hold_out.holds(document_name(self.name, row)) else "train"
        writer, first = self.writers[split], self.first[split]
        long = self.words >= LONG_WORDS
        if first is None or long:
            writer.begin(document_name(self.name, row))
            writer.books[-1]["documents"] = 1
            self.first[split] = None if long else row
        else:
            writer.append(self.line_end, 0)
            writer.books[-1] |= {
                "name": document_name(self.name, first) + f"-{row}",
                "documents": writer.books[-1]["documents"] + 1,
            }
        for ids in self.ids:
            writer.append(ids, 0)
        writer.books[-1]["words"] += self.words
