"""`town`: a made-up town's books and official task files; none where all data are real."""

from gpt1.base.files import stage_folder, writing_folder
from gpt1.params.schema import read_params
from gpt1.town.files import write_town


def main() -> None:
    """Write the town of params.yaml."""
    town = read_params().town
    with writing_folder(stage_folder("town")) as folder:
        if town:
            write_town(folder, town.seed, town.books, town.pages)
