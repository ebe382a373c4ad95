"""What a page is made of: facts told, asked for, doubted and said again; gifts and ways; good days and bad ones.

A scene keeps what it states, so that every statement can be checked against the town.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from gpt1.demo import telling, words
from gpt1.demo.telling import Fact, ask, sentence, tell
from gpt1.demo.town import PERSON_KINDS, THING_KINDS, Town

WORDINGS = 8
QUESTIONS = 6


class Statement(NamedTuple):
    """That the fact holds, or does not, once the first `events` events of the town have happened; `text` says so."""

    fact: Fact
    holds: bool
    events: int
    text: str


@dataclass
class Scene:
    """Sentences about a town, the two who talk in them, what was told, and every statement made."""

    town: Town
    chance: Random
    sentences: list[str] = field(default_factory=list)
    told: list[Fact] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    speakers: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        one, two = self.chance.sample(self.town.people, 2)
        self.speakers = one, two

    def say(self, *clauses: str) -> None:
        """Add clauses, each as a sentence of its own."""
        self.sentences += [sentence(clause) for clause in clauses]

    def state(self, fact: Fact, text: str, holds: bool = True) -> str:
        """Note that `text` states the fact (or its opposite); returns the text."""
        self.statements.append(Statement(fact, holds, len(self.town.events), text))
        return text

    def reword(self, fact: Fact) -> str:
        """The fact in any wording."""
        return tell(fact, self.chance.randrange(WORDINGS))

    def ask(self, fact: Fact) -> str:
        """The question for the fact in any wording, now and then for an hour."""
        question = ask(fact, self.chance.randrange(QUESTIONS))
        return f"{question} {self.chance.choice(words.HOURS)}" if self.chance.random() < 0.2 else question


def quoted(text: str, mark: str = ",") -> str:
    """Words in quotation marks, with a comma or a question mark inside."""
    return f'"{text[0].upper()}{text[1:]}{mark}"'


def introduce(scene: Scene) -> None:
    """Two people or two things: one kind of fact about both, and another about one of them, in the form of some kind of text."""
    town, chance = scene.town, scene.chance
    subjects, kinds = (town.people, PERSON_KINDS) if chance.random() < 0.5 else (town.things, THING_KINDS)
    first, second = chance.sample(subjects, 2)
    shared, other = chance.sample(kinds, 2)
    facts = [town.fact(shared, first), town.fact(shared, second), town.fact(other, chance.choice((first, second)))]
    if facts[0].value == facts[1].value:
        facts.pop()
    chance.shuffle(facts)
    clauses = [scene.state(fact, scene.reword(fact)) for fact in facts]
    scene.say(*chance.choice(list(GENRES.values()))(scene, clauses))
    scene.told = facts


def plain(_: Scene, clauses: list[str]) -> list[str]:
    """One after another, the last two joined."""
    return [*clauses[:-2], f"{clauses[-2]}, and {clauses[-1]}"] if len(clauses) > 2 else clauses


def letter(scene: Scene, clauses: list[str]) -> list[str]:
    """A letter."""
    writer, reader = scene.speakers
    return [f"dear {reader}", *clauses, f"yours, {writer}"]


def diary(scene: Scene, clauses: list[str]) -> list[str]:
    """A page of a diary."""
    return [f"{scene.speakers[0]} wrote in a diary: {clauses[0]}", *clauses[1:]]


def report(scene: Scene, clauses: list[str]) -> list[str]:
    """What the newspaper wrote."""
    return [f"the newspaper reported that {clauses[0]}", *(f"it added that {clause}" for clause in clauses[1:])]


def talk(scene: Scene, clauses: list[str]) -> list[str]:
    """What people said to one another."""
    return [f"{quoted(clause)} said {scene.chance.choice(scene.speakers)}" for clause in clauses]


def notice(scene: Scene, clauses: list[str]) -> list[str]:
    """A notice on the wall."""
    place = scene.chance.choice(words.PLACES)
    return [f"a notice hung on the door of the {place}", *(f"it read: {clause}" for clause in clauses)]


GENRES: dict[str, Callable[[Scene, list[str]], list[str]]] = {
    "story": plain, "letter": letter, "diary": diary, "report": report, "talk": talk, "notice": notice}


def wrong(scene: Scene, fact: Fact) -> Fact:
    """The fact with a value that is not its own: mostly that of the other subject just told of."""
    values = [other.value for other in scene.told if other.kind == fact.kind and other.value not in (fact.value, fact.subject)]
    return fact._replace(value=values[0] if values and scene.chance.random() < 0.7 else scene.town.other_value(fact))


def untold(scene: Scene, fact: Fact) -> Fact:
    """Something about the same subject, or of the same kind about another, of which nothing was said, with any value."""
    town, chance = scene.town, scene.chance
    told = {(other.kind, other.subject) for other in scene.told}
    kinds = [kind for kind in town.kinds_of(fact.subject) if (kind, fact.subject) not in told]
    near = [other for other in scene.told if other.kind in kinds and other.value != fact.subject]
    if near and chance.random() < 0.5:  # what is so of another
        return near[0]._replace(subject=fact.subject)
    guess = town.fact(chance.choice(kinds), fact.subject)
    return guess if chance.random() < 0.5 else guess._replace(value=town.other_value(guess))


def claim(scene: Scene) -> None:
    """Somebody says something, and it is true, false, or nobody can tell."""
    chance, fact = scene.chance, scene.chance.choice(scene.told)
    speaker = chance.choice(scene.speakers)
    verdict = chance.choices((telling.TRUE, telling.FALSE, telling.UNKNOWN), (0.45, 0.35, 0.2))[0]
    if verdict is telling.UNKNOWN:
        clause = scene.reword(untold(scene, fact))
    elif verdict is telling.FALSE:
        fact = wrong(scene, fact)
        clause = scene.state(fact, scene.reword(fact), holds=False)
    else:
        clause = scene.state(fact, scene.reword(fact))
    saying = f"{speaker} {chance.choice(telling.SAYING)} that {clause}" if chance.random() < 0.2 else f"{speaker} said: {clause}"
    scene.say(saying, chance.choice(verdict))


def question(scene: Scene) -> None:
    """A question about what was told, and its answer."""
    fact = scene.chance.choice(scene.told)
    asking, knowing = scene.chance.sample(scene.speakers, 2)
    reply = scene.state(fact, telling.answer(fact))
    if scene.chance.random() < 0.2:
        scene.say(f"{quoted(scene.ask(fact), '?')} asked {asking}", f"{quoted(reply)} said {knowing}")
    else:
        scene.say(f"{asking} asked: {scene.ask(fact)}?", reply)


def restate(scene: Scene) -> None:
    """The same in other words."""
    fact = scene.chance.choice(scene.told)
    first, second = scene.chance.sample(range(WORDINGS), 2)
    scene.state(fact, tell(fact, second))
    scene.say(f"{tell(fact, first)}; in other words, {tell(fact, second)}")


def compare(scene: Scene) -> None:
    """Two people say something, or ask something, in different words: the same thing, or not."""
    chance, fact = scene.chance, scene.chance.choice(scene.told)
    one, two = chance.sample(scene.speakers, 2)
    same = chance.random() < 0.5
    other = fact if same else chance.choice((wrong, untold, sibling))(scene, fact)
    if chance.random() < 0.5:
        first, second = _two_wordings(scene, fact, other, tell, WORDINGS)
        texts = [f"{one} said: {first}", f"{two} said: {second}"]
    else:
        if (other.kind, other.subject) == (fact.kind, fact.subject):
            other = fact if same else sibling(scene, fact)
        first, second = _two_wordings(scene, fact, other, ask, QUESTIONS)
        texts = [f"{one} asked: {first}?", f"{two} asked: {second}?"]
    scene.say(*texts, chance.choice(telling.SAME if same else telling.DIFFERENT))


def _two_wordings(scene: Scene, fact: Fact, other: Fact, word: Callable[[Fact, int], str], wordings: int) -> tuple[str, str]:
    first, second = scene.chance.sample(range(wordings), 2)
    return word(fact, first), word(other, second)


def sibling(scene: Scene, fact: Fact) -> Fact:
    """The fact of the same kind about another subject."""
    subjects = scene.town.things if fact.kind in THING_KINDS else scene.town.people
    return scene.town.fact(fact.kind, scene.chance.choice([subject for subject in subjects if subject != fact.subject]))


def check_answer(scene: Scene) -> None:
    """Somebody asks, somebody says something: an answer or none."""
    chance, fact = scene.chance, scene.chance.choice(scene.told)
    asking, knowing = chance.sample(scene.speakers, 2)
    good = chance.random() < 0.5
    said = fact if good else chance.choice((untold, sibling))(scene, fact)
    scene.say(f"{asking} asked: {scene.ask(fact)}?", f"{knowing} said: {scene.reword(said)}",
              chance.choice(telling.ANSWERED if good else telling.NO_ANSWER))
