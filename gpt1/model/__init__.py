"""The network and its weights."""
