"""params.yaml: what may stand in it, and what its rows make of its sections."""
