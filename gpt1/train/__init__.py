"""How the network is trained (paper, sections 3 and 4.1)."""
