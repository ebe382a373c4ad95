"""Kernels of our own for an NVIDIA GPU, in Triton: each in one file beside its plain twin."""
