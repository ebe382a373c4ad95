"""`check`, the first stage: params.yaml must be right, and all sources must be there."""

from gpt1.base.errors import UserError
from gpt1.base.files import RAW, stage_folder, writing
from gpt1.corpus.files import refuse_short
from gpt1.params.schema import read_params, refuse_without_stage

WORDS = "params.yaml is complete and well typed\n"


def main() -> None:
    """End with one line where a run could not succeed; else write a constant, so that no later
    stage runs again.
    """
    params = read_params()
    refuse_without_stage(params)
    brought = [RAW / name for name, row in params.sources.items() if row.folder == "raw"]
    if missing := [str(folder) for folder in brought if not any(folder.glob("*"))]:
        raise UserError(
            f"nothing is in {', '.join(missing)}: put the files there"
            f" (data/README.md says which), or run gpt1 profile {params.profile} --data FOLDER to"
            " link what FOLDER holds and leave out the rest"
        )
    if params.sources["books"].folder == "raw":
        refuse_short(RAW / "books", params.clean.text_field, params.model.context)
    path = stage_folder("check", "params.txt")
    if not path.is_file() or path.read_text(encoding="utf-8") != WORDS:  # else it looks as it did
        with writing(path) as file:
            file.write(WORDS)
