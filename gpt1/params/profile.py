"""conf/<name>.yaml and overrides become the values of params.yaml, less what follows from data that
are not there.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from gpt1.base.errors import ELSEWHERE, UserError, perhaps
from gpt1.base.files import RAW
from gpt1.params.rows import NO_STAGES, stage_rows, subject
from gpt1.params.schema import (
    PARAMS,
    Params,
    imported_sources,
    read_params,
    validate,
)
from gpt1.params.strict import nearest_key
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.offered import chosen
from gpt1.tasks.table import ABLATED, all_sources

CONF = Path("conf")


def compose(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a profile with overrides laid over it. Raises UserError for an unknown
    profile, key or grammar.
    """
    profiles = sorted(path.stem for path in CONF.glob("*.yaml"))
    if not profiles:
        raise UserError(f"no profiles in {CONF.absolute()}: {ELSEWHERE}")
    if name not in profiles:
        raise UserError(
            f"no profile {name!r}; expected one of {', '.join(profiles)}{perhaps(name, profiles)}"
        )
    values = overridden(CONF / f"{name}.yaml", overrides) | {"profile": name}
    try:
        return with_stages(without_pretraining(values))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{CONF / name}.yaml: expected every section of conf/paper.yaml, with its rows; found"
            f" none for {error}"
        ) from None


def without_pretraining(values: dict[str, Any]) -> dict[str, Any]:
    """The values; where pretrain.source is official, less what only a pre-training gives: LSTMs and
    scores by its updates.
    """
    if values["pretrain"]["source"] != "official":
        return values
    return values | {
        "variants": {
            name: row for name, row in values["variants"].items() if row["network"] == "transformer"
        },
        "zero_shot": {},
    }


def compose_own(overrides: Sequence[str], taken_out: bool = True) -> dict[str, Any]:
    """The plain values of params.yaml with overrides laid over it, and the rows of `stages` that
    they make; networks, tasks and variants that a person took out of those stay out (taken_out), or
    come again. Raises UserError.
    """
    composed = with_stages(overridden(PARAMS, overrides))
    if not taken_out:
        return composed
    now = read_params()
    whole, chosen = stage_rows(now, ABLATED), {}
    for kind in composed["stages"]:
        rows, there = getattr(whole, kind), getattr(now.stages, kind)
        out = set(map(subject, rows.values())) - set(map(subject, there.values()))
        new = getattr(validate(composed).stages, kind)
        chosen[kind] = {
            name: row
            for name, row in composed["stages"][kind].items()
            if subject(new[name]) not in out
        }
    return composed | {"stages": chosen}


def overridden(base: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values of a YAML file with overrides in Hydra's grammar laid over it. Raises
    UserError for an unknown key or grammar.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    for path in base.parent.glob("*.yaml") if base.parent == CONF else (base,):
        read_yaml(path)  # Hydra's own reader knows no limits, and tells of a slip in many lines
    any_key = re.compile(r"^(?=(tasks|variants)\.\w+\.finetune\.)")  # such a row may name any key
    overrides = [any_key.sub("++", override) for override in overrides]
    try:
        with initialize_config_dir(str(base.parent.absolute()), version_base=None):
            values = OmegaConf.to_container(hydra_compose(base.stem, overrides))
    except HydraException as error:
        keys = [re.split(r"[=@]", override.lstrip("+~"), maxsplit=1)[0] for override in overrides]
        near = next(
            (
                f"; did you mean {found}?"
                for key in keys
                if key in str(error) and (found := nearest_key(key, Params)) not in ("", key)
            ),
            "",
        )
        raise UserError(
            f"{str(error).splitlines()[0].rstrip('.')}{near} (expected key=value, keys as in"
            f" {CONF / 'paper.yaml'})"
        ) from None
    except Exception as error:  # what PyYAML and OmegaConf raise
        raise UserError(
            f"{base}: {type(error).__name__}: {error}; expected sections of keys and values as in "
            f"{CONF / 'paper.yaml'}"
        ) from None
    if not isinstance(values, dict):
        raise UserError(
            f"{base}: expected sections of keys and values as in {CONF / 'paper.yaml'}, found"
            f" {type(values).__name__}"
        )
    return {str(key): value for key, value in values.items()}


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
    stages = {
        kind: {
            name: row for name, row in rows.items() if "task" not in row or row["task"] in sources
        }
        for kind, rows in values["stages"].items()
    }
    download = {name: row for name, row in values["download"].items() if name in sources}
    return values | {"sources": sources, "stages": stages, "download": download, **there}


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


def with_stages(values: dict[str, Any]) -> dict[str, Any]:
    """The values with every row of `stages` that they ask for, which DVC makes stages of. Raises
    UserError.
    """
    params = validate(values | {"stages": NO_STAGES.model_dump()})
    return values | {"stages": stage_rows(params, ABLATED).model_dump(mode="json")}


def requested(
    profile: str | None,
    overrides: Sequence[str],
    tasks: Sequence[str] | None,
    anew: bool = False,
) -> dict[str, Any]:
    """The checked values of a profile, or (None) of params.yaml, with overrides, on `tasks` only
    (None: all); `anew`: with every row of `stages`, also those that a person took out. Raises
    UserError.
    """
    values = compose(profile, overrides) if profile else compose_own(overrides, not anew)
    validate(values)
    return values if tasks is None else only_tasks(values, tasks)


def compose_run(
    profile: str | None,
    overrides: Sequence[str],
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None = None,
    anew: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """The values of a run on the data at hand, and the names of tasks and zero-shot sets left out
    for want of theirs; from params.yaml (no profile) nothing is left out. downloads: names of
    sources to download. Raises UserError, also where data of one of `tasks` are absent.
    """
    whole, present = requested(profile, overrides, tasks, anew), present_sources()
    if downloads is not None:
        whole = with_downloads(whole, downloads, present)
    refuse_absent(whole, tasks or (), present, f"a run on {','.join(tasks or ())}")
    values = whole if profile is None else without_absent(whole, present)
    validate(values)
    return values, [
        name for name in {**whole["tasks"], **whole["zero_shot"]} if name not in values["sources"]
    ]


def in_words(
    profile: str | None,
    overrides: Sequence[str],
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None = None,
) -> str:
    """What a run is composed of, in one line: `small finetune.epochs=2 --tasks snli,rte`; without a
    profile params.yaml comes first.
    """
    restriction = [
        f"--{word} {','.join(names)}"
        for word, names in (("tasks", tasks), ("download", downloads))
        if names is not None
    ]
    return " ".join(" ".join([profile or str(PARAMS), *overrides, *restriction]).split())


def write_params(path: Path, values: dict[str, Any], composed_by: str) -> None:
    """Write params.yaml at `path`, with who composed it at the top; a file that says the same
    already is left alone.
    """
    beside = path.with_name(f"{path.name}.partial")
    write_yaml(
        beside,
        values,
        f"# Composed by: {composed_by}\n# Every knob of the run; conf/paper.yaml says what each"
        " means. Edit it, or compose it anew.\n",
    )
    if path.is_file() and path.read_bytes() == beside.read_bytes():
        beside.unlink()
    else:
        beside.replace(path)
