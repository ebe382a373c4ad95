"""The table of downloads: what gpt1/sources/addresses.py knows of each file."""

from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.table import SOURCES
from gpt1.tasks.table import TASKS

SHOWN_DIGITS = 12


def downloads() -> str:
    """A row a file: source, file, bytes, checksum and who published it, address, licence."""
    head = (
        "| source | file | bytes | checksum, and who published it | from | licence"
        " |\n|---|---|---:|---|---|---|"
    )
    rows = []
    for name, remotes in DOWNLOADS.items():
        licence = SOURCES[name].licence if name in SOURCES else TASKS[name].licence
        for remote in remotes:
            checked = f"{remote.kind} `{remote.checksum[:SHOWN_DIGITS]}…`: {remote.publisher}"
            size = f"{remote.bytes_:,}" if remote.bytes_ else "not published"
            rows.append(
                f"| `{name}` | {remote.name} | {size} | {checked} | [there]({remote.address}) | {licence} |"
            )
    return "\n".join([head, *rows])
