"""The run's reports inside an article: their tables, notes and pictures, without what the article
says once for all.
"""

from collections.abc import Iterator
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.results.document import (
    DOCUMENT,
    Block,
    Bullets,
    Grid,
    Heading,
    Paragraph,
    Picture,
    read_document,
)
from gpt1.results.page.page import CLAIMS_PICTURE, PICTURES, TABLE5_PICTURE

SHOWN = {"claims.svg": CLAIMS_PICTURE, "table5.svg": TABLE5_PICTURE} | PICTURES


def require(names: tuple[str, ...]) -> None:
    """Raises UserError where one of these reports of the run is not there."""
    absent = [name for name in names if not (stage_folder("report", name) / DOCUMENT).is_file()]
    if absent:
        raise UserError(
            "the article is of a finished run, and these reports are not there:"
            f" {', '.join(absent)}; gpt1 run makes them"
        )


def report_blocks(name: str, level: int, said: set[str]) -> Iterator[Block]:
    """A report's blocks under a heading of `level`, without the facts of its run, without notes
    that were `said` before, and with pictures by their paths.
    """
    folder = stage_folder("report", name)
    facts = True  # a list before the first table or picture
    for block in read_document(folder):
        match block:
            case Heading(own, text):
                yield Heading(level + own - 1, text)
            case Bullets(lines) if not facts:
                if fresh := tuple(line for line in lines if line not in said):
                    said.update(fresh)
                    yield Bullets(fresh)
            case Picture(file, shows):
                yield picture(folder / file, shows)
                facts = False
            case Paragraph():
                yield block
            case Grid():
                yield block
                facts = False


def picture(path: Path, shows: str = "") -> Picture:
    """A picture of a report by its path, with the words that the page has under it."""
    return Picture(path.as_posix(), SHOWN.get(path.name, shows))
