"""The model card's front matter in the terms of the Hugging Face hub: licence, data sets, base
model, and the scores as a model-index.
"""

from collections.abc import Mapping
from typing import Any

from gpt1.tasks.table import TASKS

HUB = {  # a task's data set on the hub and its configuration; those of GLUE under their own names
    "snli": ("stanfordnlp/snli", "plain_text"),
    "scitail": ("allenai/scitail", "snli_format"),
    "race": ("ehovy/race", "all"),
    "story_cloze": ("LSDSem/story_cloze", "2016"),
}
GLUE, RELEASED = "nyu-mll/glue", "openai-community/openai-gpt"
METRICS = {
    "matthews": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
}  # others have one name in both


def metadata(facts: Mapping[str, Any], task: str | None, base_model: str | None) -> dict[str, Any]:
    """license (`mit` where all that the model was made of has it), base_model, datasets (those of
    `task`) and results, each empty where nothing is known; `facts` as card.facts_about has them.
    """
    results = [_result(one, task is None) for one in facts["results"]]
    sets = {one["dataset"]["type"] for one in results if "/" in one["dataset"]["type"]}
    released = bool(facts["imported"] and facts["imported"].get("released"))
    if task is None and facts["training"].get("heldout_perplexity"):
        results.insert(0, _perplexity(facts))
    licences = {licence for _, _, licence in facts["licences"] or ()}
    if licences == {"MIT"} or (released and task is None):
        licence = "mit"
    else:
        licence = "other" if licences else "unknown"
    return {
        "license": licence,
        "base_model": base_model or (RELEASED if released else None),
        "datasets": sorted(sets) if task else [],
        "results": results,
    }


def _perplexity(facts: Mapping[str, Any]) -> dict[str, Any]:
    books = f"{facts['corpus']['name']}: " if facts["corpus"] else ""
    value = round(facts["training"]["heldout_perplexity"], 4)
    return {
        "task": {"type": "text-generation"},
        "dataset": {"type": "books", "name": f"{books}whole books that are not trained on"},
        "metrics": [{"type": "perplexity", "value": value, "name": "perplexity a token"}],
    }


def _result(row: Mapping[str, Any], of_language_model: bool) -> dict[str, Any]:
    """A row of Tables 2 to 4: the score as 0..1 (correlations -1..1), a mean over seeds."""
    task, chooses = row["task"], TASKS[row["task"]].kind == "multiple_choice"
    name, configuration = HUB.get(task, (GLUE, task))
    seeds = int(row["seeds"])
    said = f"{row['metric']}, {f'mean over {seeds} seeds' if seeds > 1 else 'one seed'}"
    args = {"rows": int(row["examples"])}
    return {
        "task": {"type": "multiple-choice" if chooses else "text-classification"},
        "dataset": {
            "type": "made-up" if row["made_up"] else name,
            "name": row["column"] + (" (made up)" if row["made_up"] else ""),
            "config": {"RACE-m": "middle", "RACE-h": "high"}.get(row["column"], configuration),
            "split": row["split"].replace("dev", "validation"),
        },
        "metrics": [
            {
                "type": METRICS.get(row["metric"], row["metric"]),
                "value": round(row["score"] / 100, 6),
                "name": said + (", fine-tuned from this model" if of_language_model else ""),
                "args": args,
            }
        ],
    }
