"""Models in and out: the authors' files, and Hugging Face's folders with a model card."""
