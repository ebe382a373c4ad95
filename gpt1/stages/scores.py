"""The run's headline numbers, a small file each, and curves as CSV: what `dvc metrics` and `dvc
plots` show.
"""

from gpt1.base.files import stage_folder, writing_folder
from gpt1.results.headline import write_headline


def main() -> None:
    """Write both folders as wholes and print the numbers."""
    with (
        writing_folder(stage_folder("report", "scores")) as scores,
        writing_folder(stage_folder("report", "plots")) as plots,
    ):
        headline = write_headline(scores, plots)
    for name, numbers in headline.items():
        print(f"{name}: {', '.join(f'{key} {number:g}' for key, number in numbers.items())}")
