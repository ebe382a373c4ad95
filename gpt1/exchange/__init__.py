"""Models in and out: the authors' released files and Hugging Face's folders, both ways, with a
model card.
"""
