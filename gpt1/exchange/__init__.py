"""Models in and out: the authors' files, Hugging Face's folders."""
