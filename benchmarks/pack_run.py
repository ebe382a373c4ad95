"""A finished run's results, without data and weights, as a folder that --run and gpt1.results.load
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
from gpt1.results import load
from gpt1.results.freshness import freshness
from gpt1.results.page import INDEX, write_page
from gpt1.results.provenance import facts
from gpt1.results.runs import NAMES, PREDICTIONS, RUN, write_table

REPORT = stage_folder("report")
APART = ("scores", "plots", "dev_scores")  # dvc's


def main() -> None:
    """Write the folder anew; run.json there has commit, machine and time."""
    target = Path(sys.argv[1])
    if target.exists() and not (target / RUN).is_file():
        sys.exit(f"error: {target} is there and holds no packed run: name a new folder")
    if line := freshness().line(NAMES):
        sys.exit(f"error: {line}")
    with writing_folder(target) as folder:
        for path in sorted(REPORT.glob("*/*")):
            if path.is_file() and path.name != PREDICTIONS and path.parent.name not in APART:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / path)
        (folder / REPORT / "predictions").mkdir(parents=True)
        rows = load(".")[1]
        # zero-shot ones are as many again
        rows = rows[rows["update"].isna()].drop(columns="outdated")
        write_table(rows, folder / REPORT / "predictions" / PREDICTIONS)
        shutil.copyfile("params.yaml", folder / "params.yaml")
        write_page(folder / INDEX)
        known = facts()
        for page in sys.argv[2:]:
            blob = output("git", "rev-parse", f"{known['Commit'].split(',')[0]}:{page}")
            if not blob:
                sys.exit(f"error: expected {page} in the run's commit, found none: commit it first")
            known["Predicted in"] = f"{page}, git blob {blob}"
        write_json(folder / RUN, {"facts": known})


if __name__ == "__main__":
    main()
