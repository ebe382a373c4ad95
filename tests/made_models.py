"""Small models for imports and exports: a vocabulary, weights with their description, a file set in
the authors' form.
"""

import json
import random
import re
import subprocess
import sys

import numpy as np
import torch
from made_data import tiny_sizes

from gpt1.corpus.bpe import Vocabulary
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.weights import Description, save_weights

SIZES = tiny_sizes(context=96, width=24, layers=3, feed_forward=96, deviation=0.2)
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,'!-\"?;:()<>&_é$ς"
MERGES = "t h|th e</w>|i n|in g</w>|a n|an d</w>|l a|m p</w>|la mp</w>|n 't</w>|' s</w>|. .|.. .</w>|o n|u n|k >|' t</w>|n ' t</w>|e r</w>|r e"
NASTY = """
The lamp isn't LIT and U.S. Mr. the thing's running café “quoted” a—b wait… 3.14 $5 &amp; a<unk>b
<unk> _start_ _ İstanbul ΟΔΟΣ 🙂 (there) e.g. don´t -- ?? can't've ﬁne a/b [x] <b>bold</b> l’état
ÐµÑ o'clock
"""
BLANKS = ("\N{ZERO WIDTH SPACE}", "x\x85y", "\tand", "\n", " \n \n", "\N{NO-BREAK SPACE}")
WORDS = (*NASTY.split(), *BLANKS)


def vocabulary():
    """Byte pairs of which each is made of pieces that are there."""
    pieces, merges = {*CHARACTERS, *(character + "</w>" for character in CHARACTERS)}, []
    for merge in MERGES.split("|"):
        left, _, right = merge.partition(" ")
        if left in pieces and right in pieces:
            merges.append((left, right))
            pieces.add(left + right)
    return Vocabulary(CHARACTERS, merges)


def paragraphs(count, longest=40):
    """Texts of words as they come, nasty ones among them."""
    drawn = random.Random(0)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(1, longest))) for _ in range(count)]


def saved_model(folder, sizes=SIZES, seed=1):
    """A decoder's weights and its vocabulary in a folder; the decoder, whose biases and gains are
    drawn too, so that each counts.
    """
    words, generator = vocabulary(), torch.Generator().manual_seed(seed)
    decoder = Decoder(sizes, words.size, generator)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.3, generator=generator))
    words.save(folder, {})
    save_weights(
        folder / "weights.safetensors",
        decoder,
        Description("transformer", sizes.model_dump(), words.size, words.fingerprint),
    )
    return decoder.eval()


def save_task_model(path, task, sizes, words, seed, deviation):
    """A classifier for a task, random but for its seed, biases of the head too; `deviation`: of the
    head's weights.
    """
    generator = torch.Generator().manual_seed(seed)
    classifier = Classifier(
        Decoder(sizes, words.size + 3, generator),
        Head(sizes.width, task.outputs, task.combine, deviation, generator),
    )
    with torch.no_grad():
        classifier.head.linear.bias.normal_(generator=generator)
    kind = f"transformer for {task.name}"
    save_weights(
        path, classifier, Description(kind, sizes.model_dump(), words.size, words.fingerprint)
    )


def run_example(folder):
    """What the Python example of an exported folder's card prints, run in that folder."""
    card = (folder / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def authors_shapes(context, width, layers, inner, rows):
    """params_shapes.json as the authors wrote theirs: positions, tokens, twelve variables a block;
    matrices as 1x1 convolutions.
    """
    matrices = (width, 3 * width), (width, width), (width, inner), (inner, width)
    qkv, projection, expand, contract = ([[1, *sizes], [sizes[1]]] for sizes in matrices)
    norm = [[width], [width]]
    block = [*qkv, *projection, *norm, *expand, *contract, *norm]
    return [[context, width], [rows, width], *(layers * block)]


def write_authors(folder, shapes, words):
    """A file set in the authors' form with random numbers, cut into ten where it falls; the numbers
    end to end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = (
        np.random.default_rng(2)
        .normal(0.0, 0.1, sum(int(np.prod(shape)) for shape in shapes))
        .astype(np.float32)
    )
    (folder / "params_shapes.json").write_text(json.dumps(shapes))
    for number, part in enumerate(np.array_split(numbers, 10)):
        np.save(folder / f"params_{number}.npy", part)
    (folder / "encoder_bpe_40000.json").write_text(
        json.dumps({piece: id_ for id_, piece in enumerate(words.pieces)})
    )
    (folder / "vocab_40000.bpe").write_text(
        "\n".join(["#version: 0.2", *(" ".join(merge) for merge in words.merges)]) + "\n"
    )
    return numbers
