"""The table of downloads: what gpt1/sources/addresses.py knows of each file."""

from urllib.parse import urlsplit

from gpt1.sources.addresses import DOWNLOADS


def downloads() -> str:
    """A row a source: files, bytes where they are published, host, who published the checksums."""
    rows = ["| source | files | bytes | from | checksums by |", "|---|---|---:|---|---|"]
    for name, remotes in DOWNLOADS.items():
        files = ", ".join(remote.name for remote in remotes[:3]) + ", …" * (len(remotes) > 3)
        known = all(remote.bytes_ for remote in remotes)
        size = f"{sum(remote.bytes_ or 0 for remote in remotes):,}" if known else "-"
        hosts = ", ".join(sorted({urlsplit(remote.address).netloc for remote in remotes}))
        by = remotes[0].publisher.partition(",")[0]
        rows.append(f"| `{name}` | {files} | {size} | {hosts} | {by} |")
    return "\n".join(rows)
