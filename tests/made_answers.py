"""Fine-tuned models, tiny and random but for their seed, with the vocabulary that they answer by,
as stages write them.
"""

from pathlib import Path

from made_data import write_params
from made_models import save_task_model

from gpt1.base.files import write_json
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import read_params
from gpt1.tasks.definitions import TASKS

LETTERS = "abcdefghijklmnopqrstuvwxyz."
GROUPS = {"rte": "glue_nli", "stsb": "glue", "race": "qa", "cola": "glue"}


def write_model(name, scores, params):
    folder = Path("data/finetune", GROUPS[name], name)
    words = Vocabulary.load(Path("data/bpe"))
    for seed, score in scores.items():
        made = folder / f"seed-{seed}"
        save_task_model(
            made / "weights.safetensors", TASKS[name], params.model, words, seed, deviation=3.0
        )
        (made / "curve.jsonl").write_text('{"update": 1, "loss": 2.5}\n')
        write_json(made / "summary.json", {"best_dev_score": score, "updates": 1})


def write_models(folder, *names):
    """params.yaml, the vocabulary, and three seeds of a model for each task; the second seed is the
    best, the third its equal.
    """
    write_params(
        folder,
        model__weight_deviation=0.5,
        model__embedding_deviation=1.0,
        finetune__seeds=[0, 1, 2],
    )  # so that answers differ
    Vocabulary(LETTERS, []).save(Path("data/bpe"), {})
    for name in names:
        write_model(name, {0: 0.5, 1: 0.75, 2: 0.75}, read_params())
