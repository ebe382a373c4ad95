"""How the network is trained: losses, the authors' Adam, batches, processes."""
