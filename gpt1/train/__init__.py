"""How the network is trained: losses, the authors' Adam, batches, one process or many (paper,
sections 3 and 4.1).
"""
