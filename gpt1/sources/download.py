"""Official files brought to data/raw, and checked."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpt1.base.files import RAW, sha256_file, write_json, writing_folder
from gpt1.sources.addresses import HubFiles, Origin

ABOUT = "download.json"  # beside the files; acquire puts it into its manifest
# Of original addresses, asked by the Hub's client: its errors are short, HF_HUB_OFFLINE rules it.
PLAIN: dict[str, Any] = {"headers": {"Accept-Encoding": "identity"}, "timeout": 8}


def by_hand(source: str, origin: Origin) -> str:
    """Return the command that brings the files without this program."""
    if isinstance(origin, HubFiles):
        files = " ".join(f"--include '{pattern}'" for pattern in origin.patterns)
        return (
            f"hf download {origin.repository} --repo-type dataset --revision {origin.revision}"
            f" {files} --local-dir {RAW / source}"
        )
    return f"wget -P {RAW / source} {' '.join(origin)}"


def attempt(work: Callable[..., str], source: str, origin: Origin, *more: str) -> bool:
    """Do some work for a source; print its line, or an error and what to do. Returns whether it
    succeeded.
    """
    try:
        line, came = work(source, origin, *more), True
    except Exception as error:  # httpx and huggingface_hub have many
        why = f"{type(error).__name__}: {error}".splitlines()[0].partition(". ")[0]
        line, came = f"{source}: download failed ({why}); by hand: {by_hand(source, origin)}", False
    print(line + "\n", end="", flush=True)  # whole, beside other threads
    return came


def ask(source: str, origin: Origin, licence: str) -> str:
    """Ask the host how much is to come. Raises what the network does."""
    from huggingface_hub import HfApi, HfFileSystem, get_session, is_offline_mode

    if not isinstance(origin, HubFiles):
        heads = [get_session().head(file, **PLAIN).raise_for_status() for file in origin]
        host, size = min(origin), sum(int(head.headers["Content-Length"]) for head in heads)
    elif is_offline_mode():
        return f"{source}: from the Hub's cache, if it is there; licence: {licence}"
    else:
        host, size = HfApi().endpoint, 0
        for pattern in origin.patterns:
            path = f"datasets/{origin.repository}@{origin.revision}/{pattern}"
            files: Any = HfFileSystem().glob(path, detail=True)
            size += sum(file["size"] for file in files.values())
            if not files:
                raise FileNotFoundError(path)
    return (
        f"to download: {source}, {size / 1e6:,.2f} MB, from {urlsplit(host).netloc};"
        f" licence: {licence}"
    )


def ask_all(origins: Mapping[str, Origin], licences: Iterable[str]) -> list[bool]:
    """Ask all hosts side by side; return which have the files."""
    with ThreadPoolExecutor() as pool:
        return [*pool.map(partial(attempt, ask), origins, origins.values(), licences)]


def bring(source: str, origin: Origin) -> str:
    """Fill `data/raw/<source>` as a whole. Raises what the network does, OSError for a damaged
    file.
    """
    about = {"command": by_hand(source, origin)}
    with writing_folder(RAW / source) as folder:
        if isinstance(origin, HubFiles):
            about |= {"commit": link_files(origin, folder), "title": origin.title}
        else:
            for address, expected in origin.items():
                stream(address, expected, folder / Path(address).name)
        write_json(folder / ABOUT, about)
    return f"{source}: in {RAW / source}"


def link_files(origin: HubFiles, folder: Path) -> str:
    """Link the files of the Hub's cache into a folder; return the commit. Raises OSError for a
    damaged one.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    patterns = [*origin.patterns]
    commit = Path(
        snapshot_download(
            origin.repository,
            repo_type="dataset",
            revision=origin.revision,
            allow_patterns=patterns,
        )
    )
    for path in sorted(path for pattern in patterns for path in commit.glob(pattern)):
        blob = path.readlink().name  # of a large file its sha256
        if len(blob) == 64 and sha256_file(path) != blob:
            path.resolve().unlink()
            raise OSError(f"{path.name} was damaged in the Hub's cache, and is removed there")
        link = folder / path.relative_to(commit)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    return commit.name


def stream(address: str, expected: str, path: Path) -> None:
    """Download one file. Raises OSError where it is not the published one."""
    from huggingface_hub import get_session
    from tqdm import tqdm

    with get_session().stream("GET", address, **PLAIN) as answer, path.open("wb") as file:
        size = int(answer.raise_for_status().headers["Content-Length"])
        with tqdm.wrapattr(file, "write", total=size, desc=path.name, disable=None) as out:
            for block in answer.iter_raw():
                out.write(block)
    if (found := checksum(path, len(expected))) != expected:
        raise OSError(f"expected the checksum {expected}, found {found}")


def checksum(path: Path, digits: int) -> str:
    """Return a file's sha256, md5 or, of 40 digits, git's name."""
    kind, data = {64: "sha256", 40: "sha1"}.get(digits, "md5"), path.read_bytes()
    if digits == 40:
        data = b"blob %d\0" % len(data) + data
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()
