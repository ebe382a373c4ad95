"""`gpt1 profile`: params.yaml for the data at hand, and downloads."""

import json
import math
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.files import RAW, read_json
from gpt1.params.profile import compose, needed_by, requested, with_sources
from gpt1.params.schema import PARAMS, ablations_with_stage, refuse_without_stage, validate
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.sources.addresses import BOOK_SETS, DOWNLOADS, TERMS, book_files
from gpt1.sources.download import ABOUT, ask_all, attempt, bring
from gpt1.sources.find import find_sources
from gpt1.tasks.definitions import all_sources


def download_sources(
    values: dict[str, Any], names: Sequence[str], books: str | None, accepted: Collection[str]
) -> None:
    """Download sources by name, `all` for what data/raw lacks, and a set of books, NAME[@commit].
    Raises UserError for an unknown name, TemporaryError where one failed.
    """
    needed, recipe, known = needed_by(values), values["pretrain"], all_sources()
    origins = {
        source: DOWNLOADS[source]
        for source, row in values["sources"].items()
        if source in DOWNLOADS and (row["group"] == "tasks" or source in needed)
    }
    if books or "books" in needed:
        title, _, commit = (books or "pg19").partition("@")
        if title not in BOOK_SETS:
            raise UserError(f"--books {title}: expected one of {', '.join(BOOK_SETS)}")
        tokens = (recipe["updates"] or math.inf) * recipe["batch_size"] * values["model"]["context"]
        origins["books"] = book_files(title, commit or "main", tokens if "books" in needed else 0)
    names = [*names, *["books"] * bool(books)]
    if unknown := ", ".join({*accepted} - {*TERMS}):
        raise UserError(f"--accept {unknown}: expected {', '.join(TERMS)}, which alone has terms")
    for source in names:
        if source not in ("all", *origins):
            raise UserError(f"--download {source}: expected all, or some of {', '.join(origins)}")
    for source in [*origins]:
        if not {source, "all"} & {*names}:
            del origins[source]
        elif (RAW / source).exists():
            print(f"kept: {RAW / source}; to have it anew, remove it first")
            del origins[source]
        elif source in TERMS and source not in accepted:
            print(f"{source}: {TERMS[source]}")
            print(f"left out: {source}; to accept its terms: --accept {source}")
            del origins[source]
    there = ask_all(origins, [known[source].licence for source in origins])
    came = [
        source
        for source, is_there in zip(origins, there, strict=True)
        if is_there and attempt(bring, source, origins[source])
    ]
    if lacking := ", ".join(source for source in origins if source not in came):
        raise TemporaryError(
            f"download failed: {lacking}; run the same command again (HF_HUB_OFFLINE=1 takes only"
            " what the Hub's cache has), copy a folder from data/raw of another clone, or go on"
            " without them: the same command without --download"
        )


def compose_profile(name: str, overrides: Sequence[str], tasks: Sequence[str] | None) -> None:
    """Write params.yaml for a profile and the data at hand; say what will run, and how to get more.
    Raises UserError, and leaves params.yaml as it was.
    """
    added = added_ablations(compose(name, overrides)["ablations"])
    overrides = [*added, *overrides]
    whole = requested(name, overrides, tasks)
    present = {path.name for path in RAW.glob("*") if path.is_dir() and any(path.iterdir())}
    values = on_data(whole, present, tasks or ())
    downloaded, named = RAW / "books" / ABOUT, "corpus_name=" in " ".join(overrides)
    if values["sources"]["books"]["folder"] == "raw" and downloaded.is_file() and not named:
        values["clean"] = values["clean"] | {"corpus_name": read_json(downloaded)["title"]}
    params = validate(values)
    refuse_without_stage(params)
    words = shlex.join([name, *overrides]) + (f" --tasks {','.join(tasks)}" if tasks else "")
    write_yaml(PARAMS, values, f"gpt1 profile {words}")
    print(
        f"{PARAMS}: profile {name}, books from data/{params.sources['books'].folder}/books (in"
        f" captions: {params.clean.corpus_name}, by clean.corpus_name), tasks"
        f" {', '.join(params.tasks)}"
    )
    for override in added:
        print(f"kept, for dvc.yaml has a stage of it: {override}")
    if params.sources["books"].folder == "none":
        print(f"left out: the perplexity of the weights; to have it: {all_sources()['books'].way}")
    for absent in {**whole["tasks"], **whole["zero_shot"]}:
        if absent not in params.sources:
            print(f"left out: {absent}; to have it: {all_sources()[absent].way}")


def on_data(
    values: dict[str, Any], present: Collection[str], tasks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values without tasks and sources that have no data. Raises UserError where no run
    is possible, or one of `tasks` is lacking.
    """
    needed = needed_by(values)
    rows = {
        name: row
        for name, row in values["sources"].items()
        if row["group"] == "tasks" or name in ("books", *needed)
    }
    if "books" not in (*needed, *present):
        rows["books"] = rows["books"] | {"folder": "none"}
        values = values | {"clean": values["clean"] | {"corpus_name": "no books"}}
    available = {name for name, row in rows.items() if name in present or row["folder"] != "raw"}
    for name in (*needed, *tasks):
        if name not in available:
            raise UserError(
                f"nothing is in {RAW / name}, and"
                f" {'--tasks names it' if name in tasks else 'this profile needs it'}:"
                f" {all_sources()[name].way}; or give --data FOLDER"
            )
    return with_sources(values | {"sources": rows}, available)


def added_ablations(recorded: Collection[str]) -> list[str]:
    """Return overrides with the ablations that somebody has added with a stage, or DVC would read
    no stage.
    """
    values = read_yaml(PARAMS) if PARAMS.is_file() else None
    today = values.get("ablations") if isinstance(values, dict) else None
    if not isinstance(today, dict):
        return []
    names = (today.keys() & ablations_with_stage()) - {*recorded}
    return [f"ablations.{name}={json.dumps(today[name])}" for name in sorted(names)]


def link_sources(folder: Path) -> None:
    """Link what `folder` holds under data/raw. Raises UserError where it holds nothing known, or a
    folder is in the way.
    """
    places = find_sources(folder, all_sources().values())
    if not any(places.values()):
        raise UserError(
            f"--data {folder} is no folder that holds one of a known name (books, SNLI, RACE, …);"
            " docs/tasks.md lists them"
        )
    for name, path in places.items():
        link = RAW / name
        if path and link.exists() and not link.is_symlink():
            raise UserError(f"{link} is your own; move it away before linking {path} in its place")
        if path:
            link.parent.mkdir(parents=True, exist_ok=True)
            target = path.resolve()  # before the link goes, which `path` may be
            link.unlink(missing_ok=True)
            link.symlink_to(target)
