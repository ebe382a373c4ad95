"""`gpt1 report`."""

from pathlib import Path

from gpt1.commands.options import Run

EXAMPLES = """
Examples:

    gpt1 report                          write data/report/index.html from what is there

    gpt1 report --run reference/town     where the page of the shipped run lies
"""


def report(
    run: Run = None,
) -> None:
    """Put every result of the run on one page: tables, figures, claims, samples, cost, provenance.

    Runs nothing: the page of an unfinished run names what is missing. With --run it prints where
    the page of that run lies.
    """
    from gpt1.results.page import INDEX, write_page
    from gpt1.results.runs import missing, within

    if run is not None:
        with within(run):
            if not INDEX.is_file():
                raise missing(INDEX)
            print(INDEX.absolute())
        return
    if not Path("dvc.yaml").is_file():
        raise missing(INDEX)
    written = write_page()
    print(f"{written['path']}: {written['bytes'] / 1000:,.0f} kB, to open in any browser")
    if written["parts_missing"]:
        some = ", ".join(written["parts_missing"])
        print(f"without {some}: gpt1 run makes them, gpt1 report the page again")
