"""DVC's word that nothing of the graph is out of date, kept for as long as no file that it rests on
looks otherwise: by size and time of last change, as in DVC's own memory of hashes.

Asking DVC takes seconds, for it reads params.yaml anew for every stage.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpt1.base.files import files_under, fingerprint, looks, read_json, write_json
from gpt1.pipeline.schedule import Stage

KEPT = Path(".dvc/tmp/gpt1-up-to-date.json")
# what DVC reads beside the stages' own inputs and outputs
FILES = ("dvc.yaml", "dvc.lock", "params.yaml", ".dvcignore", ".dvc/config", ".dvc/config.local")


def remember(stages: Mapping[str, Stage], cache: Path, asked: float) -> None:
    """Keep that DVC, asked at the time `asked` (seconds since 1970), found all of these stages up
    to date; not where a file of theirs has been touched since. `cache` is the folder of its cache.
    """
    paths = outermost(path for stage in stages.values() for path in (*stage.reads, *stage.writes))
    paths += [path for path in FILES if Path(path).is_file()]
    with suppress(OSError):
        seen = appearance(paths, cache)
        if all(file.stat().st_ctime < asked for file in files_under(paths)):
            rows = [
                [stage.name, sorted(stage.needs), stage.reads, stage.writes, stage.trains]
                for stage in stages.values()
            ]
            about: dict[str, Any] = {"paths": paths, "cache": str(cache), "stages": rows}
            write_json(KEPT, about | {"appearance": seen})


def recall() -> dict[str, Stage]:
    """Every stage of the graph by name, where none is out of date; {} where only DVC can tell."""
    try:
        kept = read_json(KEPT)
        if kept["appearance"] != appearance(kept["paths"], Path(kept["cache"])):
            return {}
        return {
            name: Stage(name, frozenset(needs), tuple(reads), tuple(writes), trains)
            for name, needs, reads, writes, trains in kept["stages"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def outermost(paths: Iterable[str]) -> list[str]:
    """Paths, in order, without those that lie under others of them."""
    every = set(paths)
    return sorted(path for path in every if not every & {*map(str, Path(path).parents)})


def appearance(paths: Iterable[str], cache: Path) -> str:
    """Sixteen digits that stand for files by their looks, for which of FILES are there, and for
    what DVC's cache holds, by when something was last put into its folders or taken out. Raises
    OSError.
    """
    folders = sorted(cache.iterdir()) if cache.is_dir() else []
    held = [[folder.name, folder.stat().st_mtime_ns] for folder in folders]
    there = [path for path in FILES if Path(path).is_file()]
    return fingerprint([looks(list(paths)), there, held])
