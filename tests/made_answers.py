"""Fine-tuned models, tiny and random but for their seed, with the vocabulary that they answer by,
as stages write them.
"""

from pathlib import Path

import torch
from made_data import write_params

from gpt1.base.files import write_json
from gpt1.corpus.bpe import Vocabulary
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.weights import Description, save_weights
from gpt1.params.schema import read_params
from gpt1.tasks.definitions import TASKS

LETTERS = "abcdefghijklmnopqrstuvwxyz."
START, DELIMITER, EXTRACT = (2 * len(LETTERS) + 2 + place for place in range(3))
GROUPS = {"rte": "glue_nli", "stsb": "glue", "race": "qa", "cola": "glue"}


def one(letter):
    """The id of a word of one letter: after <unk> and the letters come the letters that end a
    word.
    """
    return 1 + len(LETTERS) + LETTERS.index(letter)


def write_model(name, scores, params):
    folder = Path("data/finetune", GROUPS[name], name)
    task, fingerprint = TASKS[name], Vocabulary.load(Path("data/bpe")).fingerprint
    for seed, score in scores.items():
        generator = torch.Generator().manual_seed(seed)
        head = Head(params.model.width, task.outputs, task.combine, 3.0, generator)
        classifier = Classifier(Decoder(params.model, EXTRACT + 1, generator), head)
        about = Description(
            f"transformer for {name}", params.model.model_dump(), START, fingerprint
        )
        save_weights(folder / f"seed-{seed}" / "weights.safetensors", classifier, about)
        (folder / f"seed-{seed}" / "curve.jsonl").write_text('{"update": 1, "loss": 2.5}\n')
        write_json(
            folder / f"seed-{seed}" / "summary.json", {"best_dev_score": score, "updates": 1}
        )


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
