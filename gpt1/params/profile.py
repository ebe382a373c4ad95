"""conf/<name>.yaml and overrides become the values of params.yaml, less what follows from data that
are not there.
"""

import json
import re
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from gpt1.base.errors import ELSEWHERE, UserError, perhaps
from gpt1.base.files import RAW
from gpt1.params.schema import Params, imported_sources, read_params, validate
from gpt1.params.strict import nearest_key
from gpt1.params.yaml import parse_yaml, read_yaml, write_commented
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.download import chosen
from gpt1.tasks.table import all_sources

CONF = Path("conf")
HEAD = (
    "Edit it, or compose it anew. PAPER and CODE say where the value of conf/paper.yaml comes from."
)
OVERRIDE = re.compile(r"(?P<sign>[+~]?)(?P<key>[\w.]+)(?:=(?P<value>.*))?", re.DOTALL)
ANY_KEY = re.compile(
    r"(tasks|variants)\.\w+\.finetune"
)  # a row that may hold any key of `finetune`


def compose(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a profile with overrides laid over it. Raises UserError for an unknown
    profile, key or grammar.
    """
    values: dict[str, Any] = {}
    for path in files_of(name):
        over = sections_of(path).items()
        values = laid_over(values, {key: part for key, part in over if key != "defaults"})
    values = overridden(values | {"profile": name}, overrides)
    try:
        return without_pretraining(values)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{CONF / name}.yaml: expected every section of conf/paper.yaml, with its rows; found"
            f" none for {error}"
        ) from None


def files_of(name: str, above: tuple[str, ...] = ()) -> list[Path]:
    """The files of a profile, each to be laid over those before it: a profile's list `defaults`
    names the ones that it starts from; `above`: those that start from it. Raises UserError for an
    unknown profile, or one that starts from itself.
    """
    if name in above:
        circle = " -> ".join([*above, name])
        raise UserError(f"{CONF}: defaults go in a circle, {circle}; take one of them out")
    profiles = sorted(path.stem for path in CONF.glob("*.yaml"))
    if not profiles:
        raise UserError(f"no profiles in {CONF.absolute()}: {ELSEWHERE}")
    if name not in profiles:
        raise UserError(
            f"no profile {name!r}; expected one of {', '.join(profiles)}{perhaps(name, profiles)}"
        )
    path = CONF / f"{name}.yaml"
    before = sections_of(path).get("defaults", [])
    each = [files_of(one, (*above, name)) for one in before if one != "_self_"]
    return [*chain(*each), path]


def sections_of(path: Path) -> dict[str, Any]:
    """What a profile says itself. Raises UserError where these are no sections."""
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise UserError(
            f"{path}: expected sections of keys and values, found {type(values).__name__}"
        )
    return values


def laid_over(base: Any, over: Any) -> Any:
    """`over` laid over `base`, section by section; a list or a number takes another's place."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {key: laid_over(base.get(key), part) for key, part in over.items()}


def overridden(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values with overrides laid over them: key=value, +key=value for a new row, ~key to take
    one out. Raises UserError for an unknown key or grammar.
    """
    values = json.loads(json.dumps(values))  # no part is another's too, as an alias of YAML is
    for override in overrides:
        match = OVERRIDE.fullmatch(override)
        if not match or (match["value"] is None) != (match["sign"] == "~"):
            raise UserError(
                f"{override}: expected key=value, +key=value for a new row, or ~key to take one out"
            )
        above, _, last = match["key"].rpartition(".")
        section: Any = values
        for part in filter(None, above.split(".")):
            section = section.get(part) if isinstance(section, dict) else None
        free = match["sign"] == "+" or ANY_KEY.fullmatch(above)
        if not isinstance(section, dict) or not (last in section or free):
            near = nearest_key(match["key"], Params)
            hint = f"; did you mean {near}?" if near not in ("", match["key"]) else ""
            raise UserError(f"no key {match['key']}{hint} (expected one of {CONF / 'paper.yaml'})")
        if match["sign"] == "~":
            del section[last]
        else:
            section[last] = parse_yaml(match["value"], override)
    return values


def without_pretraining(values: dict[str, Any]) -> dict[str, Any]:
    """The values; where pretrain.source is official, less what only a pre-training gives: LSTMs and
    scores by its updates.
    """
    if values["pretrain"]["source"] != "official":
        return values
    variants = {
        name: row if row["network"] == "transformer" else row | {"tasks": {}}
        for name, row in values["variants"].items()
    }
    networks = {"pretrain": ["transformer"], "zero_shot": []}
    return values | {"networks": networks, "variants": variants, "zero_shot": {}}


def link_folder(link: Path, folder: Path) -> None:
    """Make `link` a link to a folder. Raises UserError where what is no link stands in the way."""
    if link.exists() and not link.is_symlink():
        raise UserError(
            f"{link} is a {'folder' if link.is_dir() else 'file'} of your own;"
            f" move it away before linking {folder} in its place"
        )
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder.resolve(), target_is_directory=True)


def present_sources() -> set[str]:
    """Names of the sources whose folder under data/raw exists and is not empty."""
    return {path.name for path in RAW.glob("*") if path.is_dir() and any(path.iterdir())}


def with_sources(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The values less every source that is not named, and what follows from it: tasks, ablations,
    layer transfer, zero-shot sets.
    """
    sources = {name: row for name, row in values["sources"].items() if name in names}
    there = {
        section: {name: row for name, row in values[section].items() if name in sources}
        for section in ("tasks", "transfer", "zero_shot")
    }
    variants = {
        name: row | {"tasks": {task: at for task, at in row["tasks"].items() if task in sources}}
        for name, row in values["variants"].items()
    }
    download = {name: row for name, row in values["download"].items() if name in sources}
    return values | {"sources": sources, "variants": variants, "download": download, **there}


def only_tasks(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The values less the tasks and zero-shot sets that are not named; books and the made-up world
    stay. Raises UserError for others.
    """
    known = [name for name, row in values["sources"].items() if row["group"] == "tasks"]
    if not names:
        raise UserError(f"no task is named; expected some of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UserError(
                f"no task {name!r} here{perhaps(name, known)} (expected some of {', '.join(known)})"
            )
    return with_sources(
        values, {*names, *(name for name in values["sources"] if name not in known)}
    )


def imported(values: dict[str, Any]) -> dict[str, bool]:
    """Whether a run needs each of the sources that not every run needs."""
    return imported_sources(values["bpe"]["source"], values["pretrain"]["source"])


def with_downloads(
    values: dict[str, Any], names: Sequence[str], present: set[str]
) -> dict[str, Any]:
    """The values with rows of `download` for the named sources (all: each that can be downloaded)
    that are not in data/raw.

    Raises UserError for a name that is none of theirs, or that no program may download.
    """
    needed = imported(values)
    wanted = {name: row for name, row in values["sources"].items() if needed.get(name, True)}
    brought = chosen(names, wanted, present, all_sources())
    sources = {
        name: row | {"folder": "download"} if name in brought else row
        for name, row in values["sources"].items()
    }
    return values | {
        "sources": sources,
        "download": values["download"] | {name: {} for name in brought},
    }


def without_absent(values: dict[str, Any], present: set[str]) -> dict[str, Any]:
    """The values less the tasks and sources that are absent. Raises UserError where no run is
    possible without one.
    """
    needed = imported(values)
    refuse_absent(
        values,
        ["books", *(name for name in needed if needed[name])],
        present,
        f"profile {values['profile']}",
    )
    return with_sources(
        values,
        {
            name
            for name, row in values["sources"].items()
            if (name in present or row["folder"] != "raw") and needed.get(name, True)
        },
    )


def refuse_absent(
    values: dict[str, Any], names: Collection[str], present: set[str], who: str
) -> None:
    """Raises UserError, with how to get it, for a named source that is not there; `who` needs
    it.
    """
    for name in names:
        if name not in present and values["sources"][name]["folder"] == "raw":
            other = f", or --download {name}" if name in DOWNLOADS else ""
            raise UserError(
                f"nothing is in {RAW / name}, and {who} cannot run without it: "
                f"{all_sources()[name].how_to_get}; or give --data FOLDER{other}"
            )


def requested(
    profile: str | None, overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> dict[str, Any]:
    """The checked values of a profile, or (None) of params.yaml, with overrides, on `tasks` only
    (None: all). Raises UserError.
    """
    if profile is None:
        values = overridden(read_params().model_dump(mode="json"), overrides)
    else:
        values = compose(profile, overrides)
    if tasks is not None:
        values = only_tasks(values, tasks)
    validate(values)
    return values


def compose_run(
    profile: str,
    overrides: Sequence[str],
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The values of a run on the data at hand, and the names of tasks and zero-shot sets left out
    for want of theirs. downloads: names of sources to download. Raises UserError, also where data
    of one of `tasks` are absent.
    """
    whole, present = requested(profile, overrides, tasks), present_sources()
    if downloads is not None:
        whole = with_downloads(whole, downloads, present)
    refuse_absent(whole, tasks or (), present, f"a run on {','.join(tasks or ())}")
    values = without_absent(whole, present)
    validate(values)
    return values, [
        name for name in {**whole["tasks"], **whole["zero_shot"]} if name not in values["sources"]
    ]


def in_words(
    profile: str,
    overrides: Sequence[str],
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None = None,
) -> str:
    """What a run is composed of, in one line: `small finetune.epochs=2 --tasks snli,rte`."""
    restriction = [
        f"--{word} {','.join(names)}"
        for word, names in (("tasks", tasks), ("download", downloads))
        if names is not None
    ]
    return " ".join(" ".join([profile, *overrides, *restriction]).split())


def write_params(path: Path, values: dict[str, Any], composed_by: str) -> None:
    """Write params.yaml at `path`, with who composed it at the top, and beside each value the
    comment of its profile, or of conf/paper.yaml; a file that says the same already is left alone.
    """
    beside = path.with_name(f"{path.name}.partial")
    head = f"Composed by: {composed_by}\n{HEAD}"
    write_commented(beside, values, files_of(values["profile"]), head)
    if path.is_file() and path.read_bytes() == beside.read_bytes():
        beside.unlink()
    else:
        beside.replace(path)
