"""Ids as text for a person, and openings that end with a word."""

from collections.abc import Sequence

from gpt1.corpus.bpe import LINE_END, UNKNOWN, WORD_END, Vocabulary


def readable(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """Words with blanks between and line breaks where the text has them; nothing that could steer a
    terminal.
    """
    lines = (" ".join(line.split()) for line in vocabulary.decode(ids).split("\n"))
    return "".join(
        character
        for character in "\n".join(lines).strip("\n")
        if character.isprintable() or character == "\n"
    )


def whole_words(vocabulary: Vocabulary, ids: Sequence[int]) -> list[int]:
    """The ids up to the last that ends a word; all where none does."""
    ends = [
        place for place, id_ in enumerate(ids, start=1) if vocabulary.pieces[id_].endswith(WORD_END)
    ]
    return list(ids[: ends[-1]] if ends else ids)


def never_generated(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of the vocabulary that stand for no text: the unknown piece."""
    return (vocabulary.pieces.index(UNKNOWN),)


def stop_ids(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """The run of ids of a stop: `\\\\n` or a line break is the line's end, all else is encoded as
    text. () where nothing is left of it.
    """
    if text in ("\n", "\\n"):
        return (vocabulary.pieces.index(LINE_END),)
    return tuple(vocabulary.encode(text))
