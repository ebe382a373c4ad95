"""params.yaml, and the recipes that follow from it."""
