"""The model card of an exported folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpt1.inference.loading import SavedModel
from gpt1.tracking.log import read_facts, reading

TEMPLATE = Path(__file__).with_name("card.md.jinja")
RELEASED = "openai-community/openai-gpt"


def model_card(saved: SavedModel, task: Mapping[str, Any] | None = None) -> Any:
    """Return the ModelCard of a language model, or of a task's (`task`: its task.json). Raises
    UserError.
    """
    from huggingface_hub import ModelCard, ModelCardData

    facts = facts_about(saved.path, task)
    licences = {licence for _, _, licence in facts["licences"]}
    released = bool(facts["imported"].get("released"))
    mit = licences == {"MIT"} or (released and not task)
    name = f"gpt1-{task['task']}" if task else "gpt1"
    chooses = task and task["combine"] == "choose"
    purpose = "multiple-choice" if chooses else "text-classification" if task else "text-generation"
    data = ModelCardData(
        language="en",
        license="mit" if mit else "other",
        library_name="transformers",
        pipeline_tag=purpose,
        tags=["gpt1", "openai-gpt"],
        base_model=RELEASED if released else None,
        model_name=name,
    )
    return ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        task=task,
        sizes=saved.description.config,
        vocabulary_size=saved.description.vocabulary_size,
        parameters=sum(tensor.numel() for tensor in saved.tensors.values()),
        **facts,
    )


def facts_about(weights: Path, task: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a run says of weights: corpus, training, import, licences. A missing file adds
    nothing. Raises UserError.
    """
    folder = weights.resolve().parent
    facts: dict[str, Any] = {"corpus": {}, "training": {}, "licences": []}
    facts["imported"] = read_facts(folder / "import.json")
    names = ["pretrain", "finetune"]
    data = next((path.parent for path in folder.parents if path.name in names), None)
    if data is None or folder.name == "snapshots":
        return facts
    cure = "make it again with dvc repro, or export a copy of the weights that lies elsewhere"
    with reading(f"{data}: a result that the model card tells of", cure):
        pretrainings = sorted((data / "pretrain/transformer").glob("seed-*"))
        seed_name = f"seed-{task['seed']}" if task else folder.name  # of several that of its number
        chosen = [row for row in pretrainings if row.name == seed_name or len(pretrainings) == 1]
        training = read_facts(chosen[0] / "summary.json") if chosen else {}
        index = read_facts(data / "shard/index.json")
        if training.get("source") == "official":
            facts["imported"] = read_facts(data / "acquire/weights/official/import.json")
        elif index:
            train = index["splits"]["train"]
            name = read_facts(data / "clean/counts.json").get("corpus_name", "books")
            facts["corpus"] = {"name": one_line(name), "books": len(train["books"])}
            facts["corpus"] |= {name: train[name] for name in ("words", "tokens")}
        sources = ("corpus/*", "bpe/*", "weights/*", *([f"tasks/{task['task']}"] if task else []))
        manifests = [
            read_facts(path)
            for source in sources
            for path in sorted((data / "acquire").glob(f"{source}/manifest.json"))
        ]
        keys = ("source", "origin", "licence")
        facts["licences"] = [[one_line(row.get(key)) for key in keys] for row in manifests]
        return facts | {"training": training}


def one_line(text: object) -> str:
    """Return a text in one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
