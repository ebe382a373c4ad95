"""A finished run's results, without data and weights, as a folder that --run and gpt1.results.load
read: how gpt1/reference/* were made.

    python benchmarks/pack_run.py FOLDER      in the root of the run's checkout
"""

import shutil
import sys
from pathlib import Path

from gpt1.base.files import sha256_file, stage_folder, write_json, writing_folder
from gpt1.results.page.page import INDEX, write_page
from gpt1.results.page.provenance import LOCK, PARAMS, code_facts, stages_taken, totals
from gpt1.results.records import PREDICTIONS, SCORES, pack_predictions
from gpt1.results.runs import RUN

REPORT = stage_folder("report")
KEPT = (".csv", ".json", ".md", ".svg", ".tex")


def main() -> None:
    """Write the folder anew; run.json there has commit, machine, time, each file's sha256."""
    target = Path(sys.argv[1])
    if target.exists() and not (target / RUN).is_file():
        sys.exit(f"error: {target} is there and holds no packed run: name a new folder")
    with writing_folder(target) as folder:
        for path in (LOCK, PARAMS, *sorted(REPORT.glob("*/*"))):
            if path in (LOCK, PARAMS) or path.suffix in KEPT or path.name == SCORES:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / path)
        (folder / REPORT / "predictions").mkdir(parents=True)
        pack_predictions(REPORT, folder / REPORT / "predictions" / PREDICTIONS)
        write_page(folder / INDEX)
        facts = {name: said for name, said in code_facts() if "sha256" not in name}
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests = {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}
        time = totals(stages_taken())[0]
        write_json(folder / RUN, {"facts": facts | {"Time": time}, "files": digests})


if __name__ == "__main__":
    main()
