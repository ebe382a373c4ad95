"""What a corpus is recognised as, so that no table calls it by another's name."""

import re
from collections.abc import Sequence

from gpt1.base.errors import UserError
from gpt1.corpus.inspection import Inspection

PG19 = re.compile(
    r"(?:.*/)?(train|validation|test)/[0-9]+\.txt"
)  # https://github.com/google-deepmind/pg19
BOOKSCORPUS = re.compile(r"(toronto\s*)?books?[\s_-]*corpus|book[\s_-]*corpus", re.IGNORECASE)
LICENSED_SHARE = 0.5


def recognised(inspections: Sequence[Inspection], documents: int) -> str:
    """PG-19 (its folders of numbered books), Project Gutenberg (books with its licence), or empty;
    `documents`: files with many each.
    """
    places = [PG19.fullmatch(inspection.book.name) for inspection in inspections]
    if (
        places
        and all(places)
        and not documents
        and any(place and place[1] == "train" for place in places)
    ):
        return "PG-19"
    licensed = sum(inspection.licensed for inspection in inspections)
    return (
        "Project Gutenberg"
        if licensed and licensed >= LICENSED_SHARE * len(inspections) and not documents
        else ""
    )


def refuse_wrong_name(name: str, found: str) -> None:
    """Raise UserError where a corpus that is recognised as another is called BooksCorpus."""
    if found and BOOKSCORPUS.search(name):
        raise UserError(
            f"clean.corpus_name says {name}, but the books are recognised as {found}; the name"
            " stands in every table, so give theirs: gpt1 profile PROFILE"
            f" 'clean.corpus_name={found}'"
        )
