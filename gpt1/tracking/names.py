"""How runs are called on MLflow's pages: names that stand in the order of the paper when sorted,
and what belongs together.
"""

from gpt1.params.schema import Params

PLACES = {
    "pretrain": "1 pretrain",
    "finetune": "2 finetune",
    "ablate": "3 ablate",
    "transfer": "4 transfer",
    "zero_shot": "5 zero-shot",
    "report": "6 report",
}
SUBJECTS = {  # stage -> what its runs are of
    "pretrain": "network",
    "finetune": "task",
    "transfer": "task",
    "zero_shot": "network",
    "report": "report",
}
GROUPED = ("finetune", "ablate", "transfer")  # a run for each seed, under one for the task
COLOURS = (  # Okabe and Ito 2008, as in the report's pictures: told apart with any colour vision
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#f0e442",
)


def run_name(stage: str, name: str) -> str:
    """`2 finetune rte` for a task of stage finetune, `2 rte seed 0` for its run rte/seed-0: what
    tells seeds apart must not be cut off.

    Numbers of layers have two digits, so that they sort.
    """
    what, *parts = name.split("/")
    place = PLACES.get(stage, stage)
    words = []
    for word, number in (part.split("-") for part in parts):
        words.append(f"{word} {int(number):02d}" if word == "layers" else f"{word} {number}")
    return " ".join((place.split()[0] if parts else place, what, *words))


def group_of(stage: str, name: str) -> str | None:
    """What a run is a part of: the task of a seed; None for a run that stands by itself."""
    task, _, seed = name.partition("/")
    return task if seed and stage in GROUPED else None


def pretraining_name(params: Params, name: str) -> str:
    """How the run of a pre-training `<network>/seed-<n>` is called: as its network where there is
    one seed.
    """
    return name.split("/")[0] if len(params.pretrain.seeds) == 1 else name


def variant_and_task(name: str) -> tuple[str, str]:
    """What an ablation's name, `lstm-mnli`, is of."""
    variant, _, task = name.rpartition("-")
    return variant, task


def marks_of(stage: str, name: str) -> dict[str, str]:
    """What a run is of, as words to search and to group by: stage, task, variant, network, layers,
    seed.
    """
    what, *parts = name.split("/")
    if stage == "ablate":
        variant, task = variant_and_task(what)
        words = {"task": task, "variant": variant}
    else:
        words = {SUBJECTS[stage]: what}
    return {"stage": stage} | words | dict(part.split("-", 1) for part in parts)


def colour_of(stage: str, name: str) -> dict[str, str]:
    """The tag by which MLflow draws the run of a seed in the seed's own colour, not one by chance;
    none where the runs to compare differ by more than their seed.
    """
    _, *parts = name.split("/")
    if stage not in GROUPED or len(parts) != 1:
        return {}
    return {"mlflow.runColor": COLOURS[int(parts[0].removeprefix("seed-")) % len(COLOURS)]}


def rerun(stage: str, name: str) -> str:
    """The command that makes a run's results again."""
    target = name.split("/")[0]
    if stage == "ablate":
        return f"gpt1 run {'@'.join(variant_and_task(target))}"
    if stage in ("pretrain", "zero_shot"):
        return f"gpt1 run {stage}"  # a stage each network and seed: those that lack run
    return f"gpt1 run {target if stage == 'report' else f'{stage}@{target}'}"
