"""How the network is trained: losses, the authors' Adam, batches, processes (paper, sections 3 and
4.1).
"""
