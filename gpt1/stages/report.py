"""Tables 2 to 5, Figure 2, the curves and the paper's claims, ours beside the paper's: from result
files, with no torch, in seconds.
"""

from collections.abc import Callable
from functools import partial

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, writing_folder
from gpt1.params.schema import Params, read_params
from gpt1.results.claims_report import claims_report
from gpt1.results.curves import curves_report
from gpt1.results.figure2 import figure2_report
from gpt1.results.formats import ReportContent, write_report
from gpt1.results.paper import TABLES
from gpt1.results.table5 import ablation_report
from gpt1.results.tables import table_report

REPORTS: dict[str, Callable[[Params], ReportContent]] = {
    **{name: partial(table_report, table=table) for name, table in TABLES.items()},
    "table5": ablation_report,
    "figure2": figure2_report,
    "curves": curves_report,
    "claims": claims_report,
}
"""{name of a report: what computes its content from the parameters and the stages' outputs}."""


def main(name: str) -> None:
    """Write one report as a whole and print it; `gpt1 sync` tells MLflow, of all results at
    once.
    """
    params = read_params()
    if name not in REPORTS:
        raise UserError(
            f"expected one of {', '.join(REPORTS)}, found {name!r}; "
            "for example: python -m gpt1.stages report table2"
        )
    with writing_folder(stage_folder("report", name)) as folder:
        text = write_report(REPORTS[name](params), folder)
    print(text)
