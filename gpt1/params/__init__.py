"""params.yaml: what it may contain, and the recipes that follow from its rows."""
