"""Prefect: when and where DVC's stages run. The only package that imports it."""

import sys
from importlib.util import find_spec

if not find_spec("prefect"):
    print("error: expected Prefect, found none: pip install 'gpt1[pipeline]'", file=sys.stderr)
    sys.exit(2)
