"""Whether two runs agree, by the rule of docs/results.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from gpt1.base.files import LOGS, read_json, stage_folder
from gpt1.params.yaml import read_yaml
from gpt1.results.paper import AVERAGE
from gpt1.results.runs import RUN, SCORES, find_run, read_table, shipped
from gpt1.results.tables import FULL, TITLES, average, common_titles
from gpt1.tracking.log import read_facts

KEYS = ["system", "task", "column", "metric", "update"]
RECIPE = ("town", "bpe", "shard", "encode", "model", "transformer", "lstm", "pretrain", "finetune")
NOT_COMPARED = ("seeds", "checkpoint_minutes", "log_updates")
# Points that count as equal however near seeds lie to each other, for the deviation of three is
# often small by luck: of a score of the full model, of its mean, and of another system, whose
# trainings may learn a task or not.
SCORE_FLOOR, MEAN_FLOOR, OTHER_FLOOR = 3.0, 1.5, 5.0
DEVIATIONS = 4.0
PERPLEXITY_RATIO = 1.02


class Agreement(NamedTuple):
    """A comparison of two runs."""

    sentence: str
    agree: bool | None  # None: not comparable
    # by KEYS: means over seeds, `here` and `there`; `spread`, the deviation over seeds there (with
    # one seed there: here); `allowed`, the largest difference that counts as agreement
    scores: pd.DataFrame


def agreement(other: Path, title: str) -> Agreement:
    """Compare this folder's run with another. Raises UserError where one has no report."""
    scores = side_by_side(other)
    both = scores.dropna(subset=["here", "there"])
    fingerprinted = both.query("rows_here != '' and rows_there != '' and task.notna()")
    other_rows = fingerprinted[fingerprinted["rows_here"] != fingerprinted["rows_there"]]
    reasons = list(different_parameters(other))
    # a run without fingerprints, of an earlier version, is compared where it has the same recipe
    difference = ""
    if len(other_rows) == len(fingerprinted) and (reasons or len(other_rows)):
        difference = "other data" if len(other_rows) else "another recipe"
    if both.empty:
        difference = "no score of this run"
    if difference:
        return Agreement(f"Not compared with {title}, which has {difference}.", None, scores)
    reasons += different_perplexity(other)
    reasons += [f"other rows of {task}" for task in other_rows["task"].unique()]
    apart = (both["here"] - both["there"]).abs()
    decides = (both["column"] == AVERAGE) | (both["system"] == FULL)
    for row in both[decides & (apart > both["allowed"])].itertuples():
        name = f"{TITLES.get(row.system, row.system)}, {row.column}"
        reasons.append(f"{name} {row.here:.1f} here, {row.there:.1f} there")
    means = both.query("system == @FULL and column == @AVERAGE")
    words = ""
    for _, mean in means.iterrows():
        words = f": mean of the full model {mean['here']:.1f} here, {mean['there']:.1f} there"
        words += f" (± {mean['spread']:.1f} over seeds)" if mean["spread"] > 0 else ""
    machines = f"{processor(Path())} here, {processor(other)} there"
    if reasons:
        more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        sentence = f"Does not agree with {title}: {'; '.join(reasons[:3])}{more} ({machines})."
        return Agreement(sentence, False, scores)
    return Agreement(f"Agrees with {title}{words} ({machines}).", True, scores)


def agreement_with_shipped() -> str:
    """Say whether this run agrees with a shipped one. "" where none is comparable."""
    found = (agreement(find_run(name), name) for name in shipped() if not Path(RUN).is_file())
    return next((each.sentence for each in found if each.agree is not None), "")


def side_by_side(other: Path) -> pd.DataFrame:
    """Join both runs' scores, and each system's mean of the columns that both have."""
    sides, runs = [], list[pd.DataFrame]()
    for run in (Path(), other):
        paths = sorted((run / stage_folder("report")).glob(f"*/{SCORES}"))
        scores = pd.concat([read_table(path) for path in paths]).dropna(subset="score")
        runs.append(scores.assign(rows=scores.get("rows", "")).fillna({"rows": ""}))
    titles = (common_titles(scores[scores["table"] == "table5"]) for scores in runs)
    shared = set.intersection(*map(set, titles))
    for scores in runs:
        table5 = scores[(scores["table"] == "table5") & scores["column"].isin(shared)]
        means = average(table5).assign(task=pd.NA, update=pd.NA)
        scores = pd.concat([scores, means])
        scores["seed"] = scores["seed"].fillna(scores["pretraining_seed"])
        scores = scores.drop_duplicates([*KEYS, "seed"])
        grouped = scores.groupby(KEYS, dropna=False, sort=False)
        statistics = grouped["score"].agg(["mean", "std", "count"])
        sides.append(statistics.assign(rows=grouped["rows"].first()))
    here, there = sides
    spread = there["std"].combine_first(here["std"])
    both = pd.DataFrame({"here": here["mean"], "there": there["mean"], "spread": spread})
    noise = spread.fillna(0) * (1 / here["count"] + 1 / there["count"]) ** 0.5
    both = both.assign(rows_here=here["rows"], rows_there=there["rows"], noise=noise).reset_index()
    floor = both["column"].eq(AVERAGE).map({True: MEAN_FLOOR, False: SCORE_FLOOR})
    floor = floor.where(both["system"] == FULL, OTHER_FLOOR)
    return both.assign(allowed=floor + DEVIATIONS * both["noise"])


def different_parameters(other: Path) -> Iterator[str]:
    """Yield the recipe's parameters that differ."""
    sides: list[dict[str, Any]] = [
        pd.json_normalize(read_yaml(path)).iloc[0].to_dict() if path.is_file() else {}
        for path in (Path("params.yaml"), other / "params.yaml")
    ]
    for key in sorted({*sides[0], *sides[1]}):
        row, inside, name = key.rpartition(".finetune.")
        if inside:
            having = [side for side in sides if any(each.startswith(f"{row}.") for each in side)]
        else:
            having = [side for side in sides if key in side]
        values = [side.get(key, side.get(f"finetune.{name}")) for side in having]
        name = key.rpartition(".")[2]
        of_recipe = inside or key.startswith(RECIPE) or name == "train_rows"
        if of_recipe and name not in NOT_COMPARED and values[0] != values[-1]:
            yield f"{key} {values[0]} here, {values[1]} there"


def different_perplexity(other: Path) -> Iterator[str]:
    """Yield a line where the first Transformers differ too much in perplexity."""
    values, seeds = [], []
    for run in (Path(), other):
        path = run / stage_folder("report", "curves", "training.csv")
        networks = read_table(path).set_index("network") if path.is_file() else pd.DataFrame()
        values.append(networks.get("heldout_perplexity", {}).get("transformer", float("nan")))
        path = run / "params.yaml"
        seeds.append(read_yaml(path)["pretrain"]["seeds"][0] if path.is_file() else 0)
    here, there = values
    if seeds[0] == seeds[1] and max(here / there, there / here) > PERPLEXITY_RATIO:
        yield f"held-out perplexity {here:.3f} here, {there:.3f} there"


def processor(run: Path) -> str:
    """Return the processor that made a run."""
    if (packed := run / RUN).is_file():
        return str(read_json(packed)["facts"]["Machine"]).partition(",")[0]
    logs = map(read_facts, sorted((run / LOGS).rglob("*.run.json")))
    return next((str(log["machine"]["cpu"]) for log in logs if "machine" in log), "unknown")
