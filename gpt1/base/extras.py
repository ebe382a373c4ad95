"""The packages that only some of the commands need, by the extra of pyproject.toml that brings
them; what to say where one is not there.
"""

EXTRAS = {  # extra -> what of its packages is imported, by the names of the modules
    "serve": ("mlflow",),
    "pipeline": (
        "datatrove",
        "deepspeed",
        "dvc",
        "loguru",
        "matplotlib",
        "multiprocess",
        "nltk",
        "platformdirs",
        "prefect",
        "psutil",
        "requests",
        "rouge_score",
        "sacrebleu",
        "sklearn",
        "threadpoolctl",
        "urllib3",
    ),
    "ray": ("ray",),
}


def how_to_get(error: ModuleNotFoundError) -> str:
    """What to do about a module that cannot be found; '' where no extra brings it."""
    module = str(error.name).partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), "")
    return extra and (
        f"expected the package {module}, found none; it comes with the extra {extra}:"
        f" pip install 'gpt1[{extra}]' (in a clone: make setup)"
    )
