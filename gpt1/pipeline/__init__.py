"""DVC's graph: what runs next and where, what is current, what it will cost."""
