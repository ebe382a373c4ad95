"""How facts are told and asked for: each kind in eight tellings of one meaning and six questions; {s} its subject, {v} its value."""

import re
from typing import NamedTuple


class Fact(NamedTuple):
    """`kind` is a key of TELLINGS; `subject` and `value` are words as they stand in a sentence: "the kite", "anna", "a baker"."""

    kind: str
    subject: str
    value: str


TELLINGS = {
    "owner": ("{v} owned {s}", "{s} belonged to {v}", "{v} was the owner of {s}", "{s} was the property of {v}",
              "{v} possessed {s}", "{s} was owned by {v}", "{s} was in the hands of {v}", "the one who had {s} was {v}"),
    "colour": ("{s} was {v}", "the colour of {s} was {v}", "{s} was painted {v}", "{s} looked {v}",
               "{s} had a {v} colour", "{s} shone {v} in the light", "somebody had dyed {s} {v}", "{v} was the colour of {s}"),
    "material": ("{s} was made of {v}", "{s} consisted of {v}", "{v} was what {s} was made of", "{s} was formed from {v}",
                 "the maker of {s} had used {v}", "{s} had been built out of {v}", "{s} was of solid {v}",
                 "for {s} somebody had taken {v}"),
    "kept": ("{s} lay in {v}", "{s} was kept in {v}", "in {v} stood {s}", "one could find {s} in {v}",
             "somebody kept {s} in {v}", "{s} had its place in {v}", "{s} was stored in {v}", "{v} was where {s} lay"),
    "place": ("{s} was in {v}", "{s} stayed in {v}", "in {v} sat {s}", "one could meet {s} in {v}",
              "{s} spent the day in {v}", "{v} was where {s} waited", "{s} was to be seen in {v}", "people found {s} in {v}"),
    "trade": ("{s} was {v}", "{s} worked as {v}", "by trade {s} was {v}", "{s} earned a living as {v}",
              "the trade of {s} was that of {v}", "everybody knew {s} as {v}", "{s} had become {v}", "{s} made money as {v}"),
    "pet": ("{s} had {v}", "{s} kept {v}", "the pet of {s} was {v}", "{v} lived with {s}",
            "{s} looked after {v}", "{v} followed {s} everywhere", "{s} fed {v} every day", "{s} shared the house with {v}"),
    "food": ("{s} liked {v}", "the favourite food of {s} was {v}", "{s} loved to eat {v}", "{s} was fond of {v}",
             "{v} tasted best to {s}", "nothing tasted better to {s} than {v}", "{s} always asked for {v}",
             "{s} could never have enough {v}"),
    "street": ("{s} lived in {v}", "the house of {s} stood in {v}", "{v} was where {s} lived", "{s} had a house in {v}",
               "{s} dwelt in {v}", "the home of {s} was in {v}", "{s} had rooms in {v}", "people visited {s} in {v}"),
    "age": ("{s} was {v} years old", "the age of {s} was {v}", "{s} had turned {v}", "{s} had lived for {v} years",
            "{s} had reached the age of {v}", "{s} had seen {v} winters", "{v} was the age of {s}", "{s} counted {v} years"),
    "friend": ("{v} was the best friend of {s}", "the best friend of {s} was {v}", "{s} trusted {v} most of all",
               "{s} liked nobody better than {v}", "nobody was closer to {s} than {v}", "{s} shared every secret with {v}",
               "the one whom {s} trusted was {v}", "{v} was dearest to {s}"),
}
QUESTIONS = {
    "owner": ("who owned {s}", "to whom did {s} belong", "who was the owner of {s}", "whose property was {s}", "who possessed {s}",
              "by whom was {s} owned"),
    "colour": ("what colour was {s}", "what was the colour of {s}", "which colour did {s} have", "how was {s} painted",
               "which colour was {s}", "in what colour did {s} shine"),
    "material": ("what was {s} made of", "of what did {s} consist", "from what was {s} formed", "what had the maker of {s} used",
                 "of which stuff was {s}", "out of what had {s} been built"),
    "kept": ("where lay {s}", "where was {s} kept", "where could one find {s}", "in which place stood {s}", "where had {s} its place",
             "where did somebody keep {s}"),
    "place": ("where was {s}", "where did {s} stay", "where could one meet {s}", "in which place sat {s}", "where did {s} spend the day",
              "where was {s} to be seen"),
    "trade": ("what was the trade of {s}", "what did {s} work as", "how did {s} earn a living", "what was {s} by trade",
              "which trade had {s}", "how did {s} make money"),
    "pet": ("which pet did {s} have", "what was the pet of {s}", "which animal lived with {s}", "which animal did {s} keep",
            "which animal did {s} feed", "which animal followed {s}"),
    "food": ("what did {s} like to eat", "what was the favourite food of {s}", "which food did {s} love", "of which food was {s} fond",
             "which food tasted best to {s}", "which food did {s} ask for"),
    "street": ("where did {s} live", "where stood the house of {s}", "in which street did {s} dwell", "where was the home of {s}",
               "where did {s} have a house", "in which street did people visit {s}"),
    "age": ("how old was {s}", "what was the age of {s}", "how many years had {s} lived", "what age had {s} reached", "which age had {s}",
            "how many winters had {s} seen"),
    "friend": ("who was the best friend of {s}", "whom did {s} trust", "whom did {s} like best", "who was closest to {s}",
               "with whom did {s} share every secret", "who was dearest to {s}"),
}
IN_PLACES = ("kept", "place", "street")  # kinds whose answer is "in ..."
TRUE = ("that was true", "and so it was", "this was so")
FALSE = ("that was not true", "but it was not so", "this was wrong")
UNKNOWN = ("nobody could tell", "that was only a guess", "perhaps it was so")
SAME = ("both meant the same", "that was one and the same thing", "it came to the same")
DIFFERENT = ("they meant different things", "that was something different", "it was not the same at all")
ANSWERED = ("that answered the question", "this was the answer")
NO_ANSWER = ("that did not answer the question", "this was no answer")
SAYING = ("said", "thought", "believed", "was sure", "declared", "told everybody", "claimed", "remarked")


def with_articles(clause: str) -> str:
    """`a` before a vowel becomes `an`."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", clause)


def tell(fact: Fact, wording: int) -> str:
    """A clause that states the fact, without a full stop."""
    return with_articles(TELLINGS[fact.kind][wording].format(s=fact.subject, v=fact.value))


def ask(fact: Fact, wording: int) -> str:
    """A question for the fact's value, without a question mark."""
    return QUESTIONS[fact.kind][wording].format(s=fact.subject)


def answer(fact: Fact) -> str:
    """The short answer: the value alone, with its preposition."""
    return f"in {fact.value}" if fact.kind in IN_PLACES else fact.value


def sentence(clause: str) -> str:
    """A clause as a sentence: a capital and a full stop."""
    return clause[0].upper() + clause[1:] + ("" if clause[-1] in ".?!" else ".")


def question(clause: str) -> str:
    """A clause that asks, as a sentence."""
    return f"{clause[0].upper()}{clause[1:]}?"
