"""`gpt1 profile`: conf/<name>.yaml and overrides become params.yaml; what a person brings is linked under data/raw."""

import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gpt1.config import PARAMS, Params, Task, Variant, ablation, validate
from gpt1.errors import UserError
from gpt1.files import DATA, RAW
from gpt1.sources.find import find_sources
from gpt1.sources.table import SOURCES, Source
from gpt1.strict import nearest_key, validated
from gpt1.tasks.table import ABLATED, TASKS
from gpt1.yaml_files import write_yaml

CONF = Path("conf")


def all_sources() -> dict[str, Source]:
    """Every source that the pipeline can take, by name: books, the authors' byte pairs, the tasks."""
    return SOURCES | {name: task.source for name, task in TASKS.items()}


def compose(name: str, overrides: list[str]) -> dict[str, Any]:
    """The plain values of a profile with overrides laid over it. Raises UserError for an unknown profile, key or grammar."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    profiles = sorted(path.stem for path in CONF.glob("*.yaml"))
    if not profiles:
        raise UserError(f"no profiles in {CONF.absolute()}: run gpt1 profile in the root of the checkout")
    if name not in profiles:
        raise UserError(f"no profile {name!r}; expected one of {', '.join(profiles)}")
    any_key = re.compile(r"^(?=(tasks|variants)\.\w+\.finetune\.)")  # such a row may name any key
    overrides = [any_key.sub("++", override) for override in overrides]
    try:
        with initialize_config_dir(str(CONF.absolute()), version_base=None):
            values = OmegaConf.to_container(hydra_compose(name, overrides))
    except HydraException as error:
        keys = [re.split(r"[=@]", override.lstrip("+~"), maxsplit=1)[0] for override in overrides]
        near = next((f"; did you mean {found}?" for key in keys
                     if key in str(error) and (found := nearest_key(key, Params)) not in ("", key)), "")
        raise UserError(f"{str(error).splitlines()[0].rstrip('.')}{near} (expected key=value, keys as in {CONF / 'paper.yaml'})") from None
    assert isinstance(values, dict)  # a profile is a mapping
    return {str(key): value for key, value in values.items()} | {"profile": name}


def link_sources(folder: Path) -> None:
    """Link what `folder` holds under data/raw. Raises UserError where it holds nothing known or a real folder stands in the way."""
    if not folder.is_dir():
        raise UserError(f"--data {folder} is not a folder; expected one laid out as data/README.md says")
    found = {name: path for name, path in find_sources(folder, all_sources().values()).items() if path}
    if not found:
        raise UserError(f"--data {folder} holds no folder of a known name (books, SNLI, RACE, …); data/README.md lists them")
    RAW.mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        link = RAW / name
        if link.is_dir() and not link.is_symlink():
            raise UserError(f"{link} is a folder of your own; move it away before linking {path} in its place")
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve(), target_is_directory=True)


def present_sources() -> set[str]:
    """Names of the sources whose folder under data/raw exists and is not empty."""
    return {path.name for path in RAW.glob("*") if path.is_dir() and any(path.iterdir())}


def without_absent(values: dict[str, Any], present: set[str]) -> dict[str, Any]:
    """The values less the tasks and sources that are absent. Raises UserError where no run is possible without one."""
    sources = all_sources()
    needed = ["books"] + (["openai_bpe"] if values["bpe"]["source"] == "authors" else [])
    for name in needed:
        if name not in present and values["sources"][name]["folder"] == "raw":
            raise UserError(f"nothing is in {RAW / name}, and profile {values['profile']} cannot run without it: "
                            f"{sources[name].how_to_get}; or give --data FOLDER")
    kept_sources = {name: row for name, row in values["sources"].items()
                    if (name in present or row["folder"] != "raw") and (name != "openai_bpe" or values["bpe"]["source"] == "authors")}
    kept_tasks = {name: row for name, row in values["tasks"].items() if name in kept_sources}
    there = {section: {name: row for name, row in values[section].items() if name in kept_sources} for section in ("transfer", "zero_shot")}
    return values | {"sources": kept_sources, "tasks": kept_tasks, **there}


def with_ablations(values: dict[str, Any]) -> dict[str, Any]:
    """The values with a row of `ablate` for every variant and task of Table 5 that is there: DVC makes a stage of each.

    Raises UserError for a wrong row.
    """
    variants = {name: validated(Variant, row, f"variants.{name}", str(PARAMS)) for name, row in values["variants"].items()}
    tasks = {name: validated(Task, row, f"tasks.{name}", str(PARAMS)) for name, row in values["tasks"].items() if name in ABLATED}
    rows = {f"{name}-{task}": ablation(name, variant, task, row).model_dump()
            for name, variant in variants.items() for task, row in tasks.items()}
    return values | {"ablate": rows}


def show(params: Params, left_out: list[str]) -> None:
    """Say what will run and what is left out, with how to get it."""
    console = Console(highlight=False)
    corpus = (DATA / params.sources["books"].folder / "books").resolve()
    console.print(f"{PARAMS}: profile [bold]{params.profile}[/], corpus from {corpus}, "
                  f"{len(params.tasks)} tasks: {', '.join(params.tasks) or 'none'}")
    if left_out:
        table = Table("left out", "how to get it", title_justify="left", pad_edge=False)
        for name in left_out:
            table.add_row(TASKS[name].title if name in TASKS else f"{name.upper()} (zero-shot)", all_sources()[name].how_to_get)
        console.print(table)
    console.print("next: gpt1 run")


def compose_profile(name: str, overrides: list[str], data: Path | None) -> None:
    """Write params.yaml for a profile, its overrides and the data at hand. Raises UserError and leaves params.yaml as it was."""
    composed = with_ablations(compose(name, overrides))
    validate(composed)
    if data is not None:
        link_sources(data.expanduser())
    values = with_ablations(without_absent(composed, present_sources()))
    params = validate(values)
    write_yaml(PARAMS, values, f"# Composed by: gpt1 profile {' '.join([name, *overrides])}\n"
                               "# Every knob of the run; conf/paper.yaml says what each means. Edit it, or compose it anew.\n")
    wanted = dict.fromkeys((*composed["tasks"], *composed["zero_shot"]))
    show(params, [name for name in wanted if name not in values["tasks"] and name not in values["zero_shot"]])
