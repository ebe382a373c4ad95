"""Tasks with one right choice: questions on passages (RACE), endings of stories (Story Cloze), and pronouns (DPRD)."""

from typing import NamedTuple

from gpt1.demo import happenings, words
from gpt1.demo.happenings import GIVING, GOING, MOOD_TEMPLATES, OPINION_TEMPLATES, THANKS, opinion
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import Side
from gpt1.demo.telling import Fact, answer, question, sentence, tell
from gpt1.demo.town import PERSON_KINDS, THING_KINDS


class Question(NamedTuple):
    """A passage, a question, four options, and the place of the right one."""

    passage: str
    question: str
    options: tuple[str, ...]
    right: int


class Story(NamedTuple):
    """Four sentences, two endings, and which is right (0 or 1)."""

    sentences: tuple[str, ...]
    endings: tuple[str, str]
    right: int


class Pronoun(NamedTuple):
    """A sentence, its pronoun, the two who may be meant, and who is."""

    sentence: str
    pronoun: str
    candidates: tuple[str, str]
    right: str


def passage(side: Side, high: bool) -> Question:
    """One kind of three subjects is told; the options are their values and one of nobody told of. `high`: then one of them changes."""
    town, chance = side.town(), side.chance
    while True:
        kind = chance.choice(("colour", "kept", "owner", "place") if high else (*THING_KINDS, *PERSON_KINDS))
        subjects = chance.sample(town.things if kind in THING_KINDS else town.people, 4)
        facts = [town.fact(kind, subject) for subject in subjects]
        if len({fact.value for fact in facts} | set(subjects)) == 8:
            break
    told, nobody = facts[:3], facts[3].value
    clauses = [side.tell(fact) for fact in told]
    asked = chance.choice(told)
    values = [fact.value for fact in told] + [nobody]
    if high:  # the subject asked for takes on a value that was nobody's
        asked = asked._replace(value=nobody)
        doer = chance.choice([person for person in town.people if person not in subjects and person not in values])
        before = town.values["owner", asked.subject] if kind == "owner" else doer
        templates = side.half(happenings.HAPPENINGS[kind])
        clauses.append(chance.choice(templates).format(p=before, s=asked.subject, v=nobody))
        if chance.random() < 0.5:  # or the change is this one's, and the question about another
            asked = chance.choice([fact for fact in told if fact.subject != asked.subject])
    chance.shuffle(values)
    options = tuple(answer(asked._replace(value=value)) for value in values)
    return Question(" ".join(map(sentence, clauses)), question(side.ask(asked)), options, values.index(asked.value))


def story(side: Side, right: int) -> Story:
    """A gift or a way, told twice over, or a day of one mood; the wrong ending has the other person, place or mood of the story."""
    pair = side.chance.choice((_gift, _way, _mood))(side)
    endings = (pair[1], pair[2]) if right == 0 else (pair[2], pair[1])
    return Story(tuple(map(sentence, pair[0])), (sentence(endings[0]), sentence(endings[1])), right)


def _gift(side: Side) -> tuple[list[str], str, str]:
    town, chance = side.town(), side.chance
    one, two, third = chance.sample(town.people, 3)
    thing, noun = chance.choice(town.things), chance.choice(words.WORKS)
    before, after = Fact("owner", thing, one), Fact("owner", thing, two)
    given = chance.choice(side.half(GIVING)).format(p=one, s=thing, v=two)
    told = [side.tell(before), side.tell(town.fact("colour", thing)), f"{two} and {one} met at the {noun} of {third}", given]
    wording = side.wordings(1, 8)[0]
    return told, f"now {tell(after, wording)}", f"now {tell(before, wording)}"


def _way(side: Side) -> tuple[list[str], str, str]:
    town, chance = side.town(), side.chance
    one, two = chance.sample(town.people, 2)
    here, there = town.fact("place", one), town.fact("place", two)
    gone = chance.choice(side.half(GOING)).format(s=one, v=there.value)
    told = [side.tell(here), side.tell(town.fact("food", two)), f"{two} called {one} from {there.value}", gone]
    wording = side.wordings(1, 8)[0]
    return told, f"now {tell(there._replace(subject=one), wording)}", f"now {tell(here, wording)}"


def _mood(side: Side) -> tuple[list[str], str, str]:
    town, chance = side.town(), side.chance
    scene, pleasant = Scene(town, chance), chance.random() < 0.5
    one, two = chance.sample(town.people, 2)
    noun = chance.choice(words.WORKS)
    adjectives = side.half(words.GOOD if pleasant else words.BAD)
    told = [opinion(scene, pleasant, one, two, noun, side.half(OPINION_TEMPLATES), adjectives) for _ in range(4)]
    template = (chance.choice(side.half(MOOD_TEMPLATES)),)
    right, wrong = (opinion(scene, mood, one, two, noun, template, adjectives) for mood in (pleasant, not pleasant))
    return told, right, wrong


def pronoun(side: Side) -> Pronoun:
    """Two people of one sex, and a reason that fits only one of them."""
    town, chance = side.town(), side.chance
    one, two = chance.sample(chance.choice((town.women, town.men)), 2)
    template, first = chance.choice(THANKS)
    text = template.partition(";")[0].format(p=one, q=two, she=town.pronoun(one))
    return Pronoun(sentence(text), town.pronoun(one), (one, two), one if first else two)
