"""Wordings of facts, eight of one meaning for each kind; {s} is the subject, {v} the value."""

import re
from random import Random
from typing import NamedTuple

from gpt1.town.lexicon import lines
from gpt1.town.qualities import OPPOSITE, POLE_OF


class Fact(NamedTuple):
    """A fact in words as in a sentence: "the kite", "a baker"."""

    kind: str  # a key of TELLINGS, or a quality, of which `value` is a word
    subject: str
    value: str

    def synonym(self, chance: Random) -> "Fact":
        """Return the quality in another word."""
        words = POLE_OF[self.value].words
        return self._replace(value=chance.choice([word for word in words if word != self.value]))

    def contrary(self, chance: Random) -> "Fact":
        """Return the opposite quality, in any word."""
        return self._replace(value=chance.choice(OPPOSITE[self.value].words))


TELLINGS = {
    "owner": lines("""
{v} owned {s}
{s} belonged to {v}
{v} was the owner of {s}
{s} was the property of {v}
{v} possessed {s}
{s} was owned by {v}
{s} was in the hands of {v}
the one who had {s} was {v}
"""),
    "colour": lines("""
{s} was {v}
the colour of {s} was {v}
{s} was painted {v}
{s} looked {v}
{s} had a {v} colour
{s} shone {v} in the light
somebody had dyed {s} {v}
{v} was the colour of {s}
"""),
    "material": lines("""
{s} was made of {v}
{s} consisted of {v}
{v} was what {s} was made of
{s} was formed from {v}
the maker of {s} had used {v}
{s} had been built out of {v}
{s} was of solid {v}
for {s} somebody had taken {v}
"""),
    "place": lines("""
{s} was in {v}
{s} stayed in {v}
in {v} sat {s}
one could meet {s} in {v}
{s} spent the day in {v}
{v} was where {s} waited
{s} was to be seen in {v}
people found {s} in {v}
"""),
    "pet": lines("""
{s} had {v}
{s} kept {v}
the pet of {s} was {v}
{v} lived with {s}
{s} looked after {v}
{v} followed {s} everywhere
{s} fed {v} every day
{s} shared the house with {v}
"""),
    "food": lines("""
{s} liked {v}
the favourite food of {s} was {v}
{s} loved to eat {v}
{s} was fond of {v}
{v} tasted best to {s}
nothing tasted better to {s} than {v}
{s} always asked for {v}
{s} could never have enough {v}
"""),
    "street": lines("""
{s} lived in {v}
the house of {s} stood in {v}
{v} was where {s} lived
{s} had a house in {v}
{s} dwelt in {v}
the home of {s} was in {v}
{s} had rooms in {v}
people visited {s} in {v}
"""),
    "age": lines("""
{s} was {v} years old
the age of {s} was {v}
{s} had turned {v}
{s} had lived for {v} years
{s} had reached the age of {v}
{s} had seen {v} winters
{v} was the age of {s}
{s} counted {v} years
"""),
    "friend": lines("""
{v} was the best friend of {s}
the best friend of {s} was {v}
{s} trusted {v} most of all
{s} liked nobody better than {v}
nobody was closer to {s} than {v}
{s} shared every secret with {v}
the one whom {s} trusted was {v}
{v} was dearest to {s}
"""),
}
OF_QUALITY = lines("""
{s} was {v}
{s} seemed {v}
{s} looked {v}
{s} became {v}
{s} stayed {v}
{s} proved {v}
{s} turned {v}
{s} appeared {v}
""")
OF_ONE = ("{s} was a {v} {w} {one}", "{s} seemed a {v} {w} {one}", "what a {v} {w} {one} {s} was")
OF_TWO = tuple(f"{wording} and {{w}}" for wording in OF_QUALITY)
ASKING_WHETHER = lines("""
was {s} {v}
did {s} seem {v}
did {s} look {v}
did {s} become {v}
did {s} stay {v}
did {s} prove {v}
""")
ASKING_ABOUT = lines("""
what about the {n} of {s}
what was the {n} of {s}
what did one hear of the {n} of {s}
what was said of the {n} of {s}
what was known of the {n} of {s}
how was the {n} of {s}
""")
TRUE = ("yes", "yes, that was true")
FALSE = ("no", "no, that was false")
UNKNOWN = ("perhaps", "perhaps, nobody knew")
SAME = ("yes, both agreed", "yes, that was the same")
DIFFERENT = ("no, both disagreed", "no, that was different")
ANSWERED = ("yes, that was an answer", "yes, now they knew")
NO_ANSWER = ("no, that was no answer", "no, they still did not know")


def with_articles(clause: str) -> str:
    """Change `a` before a vowel to `an`."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", clause)


OBJECT = {"she": "her", "he": "him", "it": "it"}


def fill(template: str, subject: str, pronoun: str | None = None, **values: str) -> str:
    """Fill in the subject for {s}, or a pronoun, which may be her or him."""
    if pronoun:
        template = re.sub(
            r"(^|\bthat |^was |^did |\{one\} )?\{s\}",
            lambda match: f"{match[1]}{pronoun}" if match[1] is not None else OBJECT[pronoun],
            template,
        )
    return with_articles(template.format(s=subject, **values))


def clause_of(fact: Fact, wording: int, pronoun: str | None = None) -> str:
    """Return a clause that states the fact."""
    return fill(TELLINGS.get(fact.kind, OF_QUALITY)[wording], fact.subject, pronoun, v=fact.value)


def sentence(clause: str) -> str:
    """Add a capital and a full stop."""
    return clause[0].upper() + clause[1:] + ("" if clause[-1] in ".?!" else ".")


def question(clause: str) -> str:
    """Make a clause a question."""
    return sentence(f"{clause}?")
