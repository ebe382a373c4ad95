"""Which sources a folder holds, and where their official files lie."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import is_hidden
from gpt1.sources.definitions import Source, SourceLayout
from gpt1.sources.exports import find_export

# official archives nest their files this deep at most: SciTailV1.1/tsv_format/, cola_public/raw/
DEPTH = 3


def find_sources(folder: Path, sources: Iterable[Source]) -> dict[str, Path | None]:
    """Return for each source the first folder of a known name with something in it, or None."""
    places: dict[str, Path | None] = {}
    for source in sources:
        names = (f"{above}{name}" for above in ("", "*/", "*/*/") for name in source.folders)
        candidates = (path for name in names for path in sorted(folder.glob(name)))
        places[source.name] = next(
            (path for path in candidates if path.is_dir() and _entries(path)), None
        )
    return places


def find_files(source: Source, folder: Path) -> dict[str, Path] | None:
    """Return {name that `acquire` gives a file: its place}, or None where no layout is complete.
    Raises UserError.
    """
    if source.every:
        return _every(folder, source.every) or None
    bases = list(_folders(folder))
    named_first = sorted(
        bases, key=lambda base: base.name not in source.folders
    )  # of a whole clone of GLUE, this task's folder
    for layout in source.layouts:
        for base in named_first if layout.exported else bases:
            if files := (
                find_export(layout, base) if layout.exported else _find_layout(source, layout, base)
            ):
                return files
    return None


def place_of(source: Source, name: str, base: Path) -> Path | None:
    """Return where a file, or the folder that it is combined of, lies."""
    if name in source.combined_folders:
        return place if any(small_files(place := base / source.combined_folders[name])) else None
    others = (base / other for other in (name, *source.other_file_names.get(name, ())))
    return next((place for place in others if place.is_file()), None)


def small_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are combined into one."""
    return sorted(path for path in folder.glob("*.[tT][xX][tT]") if not is_hidden(path.name))


def _find_layout(source: Source, layout: SourceLayout, base: Path) -> dict[str, Path] | None:
    files = {
        name: place
        for name in (*layout.required, *layout.optional)
        if (place := place_of(source, name, base))
    }
    return files if {*layout.required} <= files.keys() else None


def _entries(folder: Path) -> list[Path]:
    """Return a folder's entries, without hidden ones. Raises UserError."""
    try:
        return sorted(path for path in folder.iterdir() if not is_hidden(path.name))
    except OSError as error:
        raise UserError(
            f"{folder} cannot be read ({error.strerror}); make it readable to you"
        ) from None


def _folders(folder: Path) -> Iterator[Path]:
    """Yield a folder and those below it, nearest first, down to DEPTH."""
    level = [folder]
    for _ in range(DEPTH + 1):
        yield from level
        level = [entry for parent in level for entry in _entries(parent) if entry.is_dir()]


def _every(folder: Path, patterns: tuple[str, ...]) -> dict[str, Path]:
    """Return all files of some patterns by relative name; say on stderr what else is there. Raises
    UserError.
    """
    places, left = dict[str, Path](), Counter[str]()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if is_hidden(name):
            left["hidden"] += path.is_file()
        elif path.is_dir():
            if path.is_symlink():
                raise UserError(
                    f"{path} is a link to a folder; put that folder itself there, so that none"
                    " counts twice"
                )
            _entries(path)  # which refuses one that cannot be read
        elif not any(map(Path(name.lower()).match, patterns)):
            left[path.suffix or path.name] += 1
        elif not path.is_file() or not name.isprintable():
            raise UserError(
                f"{folder} holds {name!r}, which is a link to nothing or has a name that is not"
                " plain text; put the file itself there, rename it, or take it away"
            )
        else:
            places[name] = path
    if places and +left:
        kinds = map("{0[0]} {0[1]:,}".format, (+left).items())
        print(f"left out of {folder}: {', '.join(kinds)}", file=sys.stderr)
    return dict(sorted(places.items()))
