"""`report NAME`: a table, figure, curves or the claims, ours beside the paper's."""

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, writing_folder
from gpt1.params.schema import read_params
from gpt1.results.report import write_report
from gpt1.results.runs import NAMES


def main(name: str) -> None:
    """Write one report as a whole and print it."""
    params = read_params()
    if name not in NAMES:
        raise UserError(
            f"expected one of {', '.join(NAMES)}, found {name!r}; "
            "for example: python -m gpt1.stages report table2"
        )
    with writing_folder(stage_folder("report", name)) as folder:
        text = write_report(params, name, folder)
    print(text)
