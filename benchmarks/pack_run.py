"""A finished run's results, and a few of its models, as a folder that --run and gpt1.results.load
read: how gpt1/reference/* were made.

    python benchmarks/pack_run.py FOLDER [PREDICTIONS]      in the root of the run's checkout

PREDICTIONS: the page that said beforehand what would come out; run.json names its git blob in the
run's commit, so that anyone can see that it was there before: git cat-file -p BLOB.
"""

import shutil
import sys
from pathlib import Path

from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.base.machine import output
from gpt1.inference.finetuned import finetuned_task
from gpt1.model.weights import read_weights, save_state
from gpt1.params.recipes import pretraining_of
from gpt1.params.schema import read_params
from gpt1.results import load
from gpt1.results.page import INDEX, write_page
from gpt1.results.provenance import facts
from gpt1.results.runs import NAMES, PREDICTIONS, RUN, freshness, write_table

REPORT = stage_folder("report")
MODELS = ("qnli", "sst2", "story_cloze")  # beside the pre-trained one; each as float16, 1.2 MB


def pack_models(folder: Path) -> None:
    """Copy the vocabulary, the first pre-trained Transformer, and the best seed of three tasks."""
    params = read_params()
    shutil.copytree(stage_folder("bpe"), folder / stage_folder("bpe"))
    best = [finetuned_task(task).weights(None) for task in MODELS]
    for path in (pretraining_of(params, "transformer") / "weights.safetensors", *best):
        description, tensors = read_weights(path)
        halves = {name: tensor.half() for name, tensor in tensors.items()}
        save_state(folder / path, halves, description)
        shutil.copyfile(path.with_name("summary.json"), folder / path.with_name("summary.json"))


def main() -> None:
    """Write the folder anew; run.json there has commit, machine and time."""
    target = Path(sys.argv[1])
    if target.exists() and not (target / RUN).is_file():
        sys.exit(f"error: {target} is there and holds no packed run: name a new folder")
    if line := freshness().line(NAMES):
        sys.exit(f"error: {line}")
    with writing_folder(target) as folder:
        for path in sorted(REPORT.glob("*/*")):
            if path.is_file() and path.name != PREDICTIONS:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / path)
        (folder / REPORT / "predictions").mkdir(parents=True)
        # without zero-shot ones, which are as many again
        rows = load(".")[1].query("update.isna()").drop(columns="outdated")
        write_table(rows, folder / REPORT / "predictions" / PREDICTIONS)
        shutil.copyfile("params.yaml", folder / "params.yaml")
        pack_models(folder)
        known = facts()
        for page in sys.argv[2:]:
            blob = output("git", "rev-parse", f"{known['Commit'].split(',')[0]}:{page}")
            if not blob:
                sys.exit(f"error: expected {page} in the run's commit, found none: commit it first")
            known["Predicted in"] = f"{page}, git blob {blob}"
        write_json(Path(RUN), {"facts": known})
        write_page(folder / INDEX)  # of a packed run, which has RUN, compares it with no other
        shutil.move(RUN, folder / RUN)


if __name__ == "__main__":
    main()
