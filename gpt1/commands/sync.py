"""`gpt1 sync`."""

EXAMPLES = """
Examples:

    gpt1 sync                     after a run by gpt1 run or dvc repro

    GPT1_MLFLOW=off gpt1 run      tell MLflow nothing meanwhile; sync does later

    MLFLOW_TRACKING_URI=http://127.0.0.1:5000 gpt1 sync
"""


def sync() -> None:
    """Send finished results that MLflow does not have yet; a second call changes nothing."""
    from gpt1.base.locks import server_address
    from gpt1.params.schema import read_params
    from gpt1.results.runs import NAMES, freshness
    from gpt1.tracking.address import runs_page, tracking_uri
    from gpt1.tracking.sync import sync as sync_results

    params, uri, state = read_params(), tracking_uri(), freshness()
    held, written = sync_results(params, state.outdated, state.line(NAMES))
    news = f"{written} results written to MLflow, which has all {held} now"
    print(f"{news if written else f'MLflow is up to date: {held} results'}")
    if held:
        pages = uri if uri.startswith("http") else server_address("mlflow")
        print(f"next: {runs_page(pages) if pages else 'make ui (the pages of MLflow)'}")
