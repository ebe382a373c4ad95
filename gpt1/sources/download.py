"""Official files brought to data/raw: links into the Hugging Face Hub's cache, or files from their
original addresses, each checked before it counts as there.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpt1.base.files import RAW, sha256_file, write_json, writing_folder
from gpt1.sources.addresses import HubFiles, Origin

ABOUT = "download.json"  # beside the files; acquire puts it into its manifest
TIMEOUT_SECONDS = 8
CHUNK_BYTES = 1 << 16


def by_hand(source: str, origin: Origin) -> str:
    """Give the command that brings the files without this program."""
    folder = RAW / source
    if isinstance(origin, HubFiles):
        files = " ".join(f"--include '{pattern}'" for pattern in origin.patterns)
        return (
            f"hf download {origin.repository} --repo-type dataset --revision {origin.revision}"
            f" {files} --local-dir {folder}"
        )
    return f"wget -P {folder} {' '.join(origin)}"


def attempt(work: Callable[..., str], source: str, origin: Origin, *more: str) -> bool:
    """Do some work for a source and print its line, or that of an error with what to do. Returns
    whether it went well.
    """
    try:
        print(f"{work(source, origin, *more)}\n", end="", flush=True)  # whole, beside other threads
        return True
    except Exception as error:  # httpx, requests and huggingface_hub have many
        why = f"{type(error).__name__}: {error}".splitlines()[0].partition(". ")[0]
        line = f"{source} did not come ({why}); by hand: {by_hand(source, origin)}\n"
        print(line, end="", flush=True)
        return False


def ask(source: str, origin: Origin, licence: str) -> str:
    """Ask the host how much is to come. Raises what the network does."""
    from huggingface_hub import HfApi, HfFileSystem, is_offline_mode

    if not isinstance(origin, HubFiles):
        host = min(origin)
        size = sum(int(answer_of("head", file).headers["Content-Length"]) for file in origin)
    elif is_offline_mode():
        return f"{source}: from the Hub's cache; licence: {licence}"
    else:
        host, size = HfApi().endpoint, 0
        for pattern in origin.patterns:
            path = f"datasets/{origin.repository}@{origin.revision}/{pattern}"
            files: Any = HfFileSystem().glob(path, detail=True)
            size += sum(file["size"] for file in files.values())
            if not files:
                raise FileNotFoundError(path)
    megabytes = f"{size / 1e6:,.2f} MB"
    return f"to download: {source}, {megabytes}, from {urlsplit(host).netloc}; licence: {licence}"


def ask_all(origins: Mapping[str, Origin], licences: Iterable[str]) -> list[bool]:
    """Ask all hosts side by side. Returns which of them have the files."""
    with ThreadPoolExecutor() as pool:
        return [*pool.map(partial(attempt, ask), origins.keys(), origins.values(), licences)]


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
    """Link the files of the Hub's cache into a folder, and return the commit. Raises OSError for a
    damaged file, which is removed from the cache.
    """
    from huggingface_hub import snapshot_download

    repository, revision, patterns = origin.repository, origin.revision, [*origin.patterns]
    commit = Path(
        snapshot_download(
            repository, repo_type="dataset", revision=revision, allow_patterns=patterns
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


def answer_of(method: str, address: str) -> Any:
    """Ask an original address. Raises OSError where it refuses, or HF_HUB_OFFLINE forbids it."""
    import requests
    from huggingface_hub import is_offline_mode

    if is_offline_mode():
        raise OSError("HF_HUB_OFFLINE is set")
    plain, seconds = {"Accept-Encoding": "identity"}, TIMEOUT_SECONDS
    answer = requests.request(method, address, headers=plain, stream=True, timeout=seconds)
    answer.raise_for_status()
    return answer


def stream(address: str, expected: str, path: Path) -> None:
    """Write one file from its original address. Raises OSError where it is not
    the published one.
    """
    from tqdm import tqdm

    with answer_of("get", address) as answer, path.open("wb") as file:
        bar = {"total": int(answer.headers["Content-Length"]), "desc": path.name, "disable": None}
        with tqdm.wrapattr(file, "write", **bar) as out:
            for block in answer.iter_content(CHUNK_BYTES):
                out.write(block)
    if (found := checksum(path, len(expected))) != expected:
        raise OSError(f"expected the checksum {expected}, found {found}")


def checksum(path: Path, digits: int) -> str:
    """Give the sha256, md5 or, of 40 digits, git's name of a file's bytes."""
    kind, data = {64: "sha256", 40: "sha1"}.get(digits, "md5"), path.read_bytes()
    if digits == 40:
        data = b"blob %d\0" % len(data) + data
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()
