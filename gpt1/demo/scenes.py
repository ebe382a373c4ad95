"""What a page says of one relative or belonging: what it is like, told, shown, asked, doubted and
said again in other words.

A scene keeps what it states, so that every statement can be checked against the town.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from gpt1.demo import lexicon, telling
from gpt1.demo.qualities import ALL
from gpt1.demo.telling import (
    ASKING_ABOUT,
    ASKING_WHETHER,
    OF_ONE,
    OF_TWO,
    Fact,
    clause_of,
    fill,
    sentence,
    show,
    synonym,
    tails,
)
from gpt1.demo.town import PERSON_KINDS, THING_KINDS, Town

WORDINGS = 8
SIGNS = 4
ONES = {"she": "woman", "he": "man", "it": "thing"}


class Statement(NamedTuple):
    """That the fact holds, or does not, once the first `events` events of the town have happened;
    `text` says so.
    """

    fact: Fact
    holds: bool
    events: int
    text: str


@dataclass
class Scene:
    """Sentences about a town, the two who talk in them, whom or what they talk of, and every
    statement made.
    """

    town: Town
    chance: Random
    sentences: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    speakers: tuple[str, str] = ("", "")
    subject: str = ""
    known: tuple[str, ...] = ()
    named: bool = False  # whether the subject's name has been said

    def __post_init__(self) -> None:
        one, two = self.chance.sample(self.town.people, 2)
        self.speakers = one, two
        self.subject = self.chance.choice((*self.town.relatives, *self.town.belongings))
        self.known = tuple(self.chance.sample(self.town.qualities_of(self.subject), 2))

    def say(self, *clauses: str) -> None:
        """Add clauses, each as a sentence of its own."""
        self.sentences += [sentence(clause) for clause in clauses]

    def state(self, fact: Fact, text: str, holds: bool = True) -> str:
        """Note that `text` states the fact (or its opposite); returns the text."""
        self.statements.append(Statement(fact, holds, len(self.town.events), text))
        return text

    def one(self) -> Fact:
        """One of the two qualities that the page is about, in any word."""
        return self.town.fact(self.chance.choice(self.known), self.subject)

    def unknown(self) -> Fact:
        """A quality of the same subject that nothing was said of, as it may be or not."""
        kind = self.chance.choice(
            [kind for kind in self.town.qualities_of(self.subject) if kind not in self.known]
        )
        fact = self.town.fact(kind, self.subject)
        return fact if self.chance.random() < 0.5 else self.town.contrary(fact)

    def name(self) -> str | None:
        """A pronoun for the subject, or nothing where its name is to be said: at first, and now and
        then.
        """
        return (
            self.town.pronoun(self.subject) if self.named and self.chance.random() < 0.8 else None
        )

    def word(self, fact: Fact) -> str:
        """The fact in any wording; a quality at times twice over, or with its opposite denied, or
        with what it is like.
        """
        chance, pronoun = self.chance, self.name() if fact.subject == self.subject else None
        # The first wordings come oftener than the last, as in any language.
        text, kind = (
            clause_of(
                fact, min(chance.randrange(2 * WORDINGS) // 2, chance.randrange(WORDINGS)), pronoun
            ),
            chance.random(),
        )
        if fact.kind not in ALL or kind < 0.3:
            return text
        again = synonym(chance, fact).value
        if kind < 0.7:
            return fill(
                chance.choice(OF_ONE),
                fact.subject,
                pronoun,
                v=fact.value,
                w=again,
                one=ONES[self.town.pronoun(self.subject)],
            )
        return (
            f"{text}, not {self.town.contrary(fact).value}"
            if kind < 0.85
            else f"{text} {chance.choice(tails(fact))}"
        )

    def tell(self, fact: Fact, holds: bool = True) -> str:
        """The fact, stated, in any wording; a quality may also only show."""
        if fact.kind in ALL and self.chance.random() < 0.25:
            return self.state(fact, show(fact, self.chance.randrange(SIGNS), self.name()), holds)
        return self.state(fact, self.word(fact), holds)

    def ask(self, fact: Fact) -> str:
        """Whether the fact holds, as a question."""
        return fill(self.chance.choice(ASKING_WHETHER), fact.subject, self.name(), v=fact.value)

    def who(self) -> str:
        """Whoever says something; mostly no matter who."""
        return self.chance.choice(("some", "people", "others", self.speakers[0]))


def introduce(scene: Scene) -> None:
    """The two qualities, in the form of some kind of text."""
    chance, town = scene.chance, scene.town
    facts = [town.fact(kind, scene.subject) for kind in scene.known]
    chance.shuffle(facts)
    clauses = [scene.state(facts[0], scene.word(facts[0])), scene.tell(facts[1])]
    if chance.random() < 0.5:
        clauses.append(
            fill(
                chance.choice(OF_TWO),
                scene.subject,
                town.pronoun(scene.subject),
                v=synonym(chance, facts[0]).value,
                w=synonym(chance, facts[1]).value,
            )
        )
    scene.say(*chance.choice(list(GENRES.values()))(scene, clauses))
    scene.named = True


def prose(_: Scene, clauses: list[str]) -> list[str]:
    """One after another, the last two joined."""
    return [*clauses[:-2], f"{clauses[-2]}, and {clauses[-1]}"] if len(clauses) > 2 else clauses


def letter(scene: Scene, clauses: list[str]) -> list[str]:
    """A letter."""
    writer, reader = scene.speakers
    return [f"dear {reader}", *clauses, f"yours, {writer}"]


def diary(scene: Scene, clauses: list[str]) -> list[str]:
    """A page of a diary."""
    return [f"{scene.speakers[0]} wrote in a diary: {clauses[0]}", *clauses[1:]]


def report(_: Scene, clauses: list[str]) -> list[str]:
    """What the newspaper wrote."""
    return [
        f"the newspaper reported that {clauses[0]}",
        *(f"it added that {clause}" for clause in clauses[1:]),
    ]


def talk(scene: Scene, clauses: list[str]) -> list[str]:
    """What people said to one another."""
    return [
        f'"{clause[0].upper()}{clause[1:]}," said {scene.chance.choice(scene.speakers)}'
        for clause in clauses
    ]


def notice(scene: Scene, clauses: list[str]) -> list[str]:
    """A notice on the wall."""
    place = scene.chance.choice(lexicon.PLACES)
    return [
        f"a notice hung on the door of the {place}",
        *(f"it read: {clause}" for clause in clauses),
    ]


GENRES: dict[str, Callable[[Scene, list[str]], list[str]]] = {
    "story": prose,
    "letter": letter,
    "diary": diary,
    "report": report,
    "talk": talk,
    "notice": notice,
}


def claim(scene: Scene) -> None:
    """Somebody says something, and it is true, false, or nobody can tell."""
    chance, fact = scene.chance, scene.one()
    verdict = chance.choices((telling.TRUE, telling.FALSE, telling.UNKNOWN), (0.4, 0.35, 0.25))[0]
    if verdict is telling.UNKNOWN:
        clause = scene.word(scene.unknown())
    elif verdict is telling.FALSE:
        clause = scene.tell(scene.town.contrary(fact), holds=False)
    else:
        clause = scene.tell(fact)
    scene.say(f"{scene.who()} said: {clause}", chance.choice(verdict))


def question(scene: Scene) -> None:
    """Whether the subject is so, and the answer: yes, no, or that nobody knows."""
    chance, fact = scene.chance, scene.one()
    kind = chance.random()
    asked = fact if kind < 0.4 else scene.town.contrary(fact) if kind < 0.8 else scene.unknown()
    scene.say(f"{scene.ask(asked)}?")
    if kind < 0.8:
        scene.say(
            f"{'yes' if kind < 0.4 else 'no'},"
            f" {scene.tell(scene.town.fact(fact.kind, scene.subject))}"
        )
    else:
        scene.say(chance.choice(telling.UNKNOWN))


def quiz(scene: Scene) -> None:
    """What is so is said; then short questions, each with its answer: yes, no, or that nobody
    knows.
    """
    chance, town = scene.chance, scene.town
    scene.say(scene.tell(scene.one()))
    for _ in range(chance.randint(3, 6)):
        fact, kind = scene.one(), chance.random()
        if kind < 0.36:
            scene.say(f"{fact.value}?", "yes")
        elif kind < 0.7:
            scene.say(f"{town.contrary(fact).value}?", "no")
        else:
            scene.say(f"{scene.unknown().value}?", "perhaps")


def nouns(scene: Scene) -> None:
    """Short questions about qualities by their nouns."""
    for kind in scene.chance.sample(scene.known, 2):
        fact = scene.town.fact(kind, scene.subject)
        scene.say(
            f"{'its' if scene.subject in scene.town.belongings else 'the'} {kind}?", fact.value
        )


def restate(scene: Scene) -> None:
    """The same in other words."""
    fact = scene.one()
    scene.say(f"{scene.tell(fact)}; in other words, {scene.tell(synonym(scene.chance, fact))}")


def compare(scene: Scene) -> None:
    """Two say or ask something in different words: the same thing, or not."""
    chance, fact = scene.chance, scene.one()
    same = chance.random() < 0.5
    other = (
        synonym(chance, fact)
        if same
        else scene.town.contrary(fact)
        if chance.random() < 0.5
        else scene.unknown()
    )
    if chance.random() < 0.5:
        texts = [f"some said: {scene.word(fact)}", f"others said: {scene.word(other)}"]
    else:
        texts = [f"some asked: {scene.ask(fact)}?", f"others asked: {scene.ask(other)}?"]
    scene.say(*texts, chance.choice(telling.SAME if same else telling.DIFFERENT))


def check_answer(scene: Scene) -> None:
    """Somebody asks about a quality, somebody says something: an answer or none."""
    chance, fact = scene.chance, scene.one()
    good = chance.random() < 0.6
    said = (
        fact
        if good
        else next(scene.town.fact(kind, scene.subject) for kind in scene.known if kind != fact.kind)
    )
    scene.say(
        f"{chance.choice(ASKING_ABOUT).format(n=fact.kind, s=scene.subject)}?",
        scene.tell(said),
        chance.choice(telling.ANSWERED if good else telling.NO_ANSWER),
    )


def because(scene: Scene) -> None:
    """What a quality brings about."""
    fact, chance = scene.one(), scene.chance
    cause, effect = (
        scene.state(fact, clause_of(fact, 0, scene.name())),
        show(fact, chance.randrange(SIGNS), scene.name()),
    )
    scene.say(
        chance.choice(
            ("because {0}, {1}", "{0}; therefore {1}", "since {0}, {1}", "{1}, for {0}")
        ).format(cause, effect)
    )


def again(scene: Scene) -> None:
    """What is known, once more: one quality or both."""
    if scene.chance.random() < 0.5:
        scene.say(scene.tell(scene.one()))
    else:
        one, two = (scene.town.fact(kind, scene.subject) for kind in scene.known)
        scene.say(
            fill(scene.chance.choice(OF_TWO), scene.subject, scene.name(), v=one.value, w=two.value)
        )


def relation(scene: Scene) -> None:
    """Facts of another kind: who owns what, who lives where."""
    town, chance = scene.town, scene.chance
    subjects, kinds = (
        (town.people, PERSON_KINDS) if chance.random() < 0.6 else (town.things, THING_KINDS)
    )
    subject = chance.choice(subjects)
    for kind in chance.sample(kinds, 2):
        scene.say(scene.tell(town.fact(kind, subject)))


TALKS = (
    quiz,
    nouns,
    claim,
    question,
    restate,
    restate,
    compare,
    check_answer,
    because,
    because,
    again,
    again,
    again,
)
