"""The first stage: every key of params.yaml must be known and well typed, and all sources must be
there.
"""

from gpt1.base.errors import UserError
from gpt1.base.files import RAW, stage_folder, writing
from gpt1.corpus.documents import refuse_short
from gpt1.params.schema import Params, read_params, refuse_without_stage
from gpt1.sources.definitions import refuse_wrong_name

WORDS = "params.yaml is complete and well typed\n"


def missing_sources(params: Params) -> list[str]:
    """Return the sources of params.yaml that the user must bring and whose folder under data/raw is
    missing or empty.
    """
    brought = [name for name, row in params.sources.items() if row.folder == "raw"]
    return [name for name in brought if not any((RAW / name).glob("*"))]


def main() -> None:
    """End with one line where a run could not succeed; else write a constant, so that no later
    stage runs again.
    """
    params = read_params()
    refuse_without_stage(params)
    refuse_wrong_name(params.clean.corpus_name)
    if missing := missing_sources(params):
        raise UserError(
            f"nothing is in {', '.join(str(RAW / name) for name in missing)}: put the files there"
            f" (data/README.md says which), or run gpt1 profile {params.profile} --data FOLDER to"
            " link what FOLDER holds and leave out the rest"
        )
    if params.sources["books"].folder == "raw":
        refuse_short(RAW / "books", params.clean.text_field, params.model.context)
    path = stage_folder("check", "params.txt")
    if not path.is_file() or path.read_text(encoding="utf-8") != WORDS:  # else it looks as it did
        with writing(path) as file:
            file.write(WORDS)
