"""Events in a town."""

from gpt1.town import lexicon
from gpt1.town.lexicon import lines
from gpt1.town.scenes import Scene
from gpt1.town.telling import Fact, with_articles

GIVING = lines("""
{p} gave {s} to {v}
{v} received {s} from {p}
{p} handed {s} over to {v}
{p} made {v} a present of {s}
{v} bought {s} from {p}
{p} sold {s} to {v}
{p} left {s} to {v}
{v} won {s} from {p}
""")
PAINTING = lines("""
{p} painted {s} {v}
{p} dyed {s} {v}
{p} coloured {s} {v}
{p} made {s} {v} with a brush
""")
NOW = lines("""
now {told}
from then on {told}
so {told} now
since that day {told}
""")
TURNS = lines("""
but then everything changed: {told}
one night turned it all round, and {told}
yet that did not last, and {told}
soon after it was the other way about: {told}
""")
HAPPENINGS = {"owner": GIVING, "colour": PAINTING}
JOYS = ("to the joy of all", "thank heaven")  # what follows a kind word
GRIEFS = ("to the grief of all", "more is the pity")
VERDICTS = (
    "all in all very {v}",
    "very {v}, said {q}",
    "the talk of it was very {v}",
)  # the word of the paper's prompt for SST-2
MOOD_TEMPLATES = lines("""
{p} was {mood}
{p} felt {mood}
{p} went home {mood}
{p} and {q} were {mood}
everybody saw how {mood} {p} was
it made {p} {mood}
{q} found {p} {mood}
{p} became {mood} and {mood2}
{she} was {degree} {mood}
all the people were {mood}
""")
OPINION_TEMPLATES = lines("""
the {noun} was {adjective}
the {noun} was {degree} {adjective}
the {noun} turned out {adjective}
people {verb} the {adjective} {noun}
{q} {verb} the {noun}
{p} was {adjective} and {adjective2}
what a {adjective} {adjective2} {noun}
everybody {verb} {p}
it was a {adjective} {adjective2} {noun}
{q} {verb} that {adjective} {adjective2} {noun}
{p} was a {adjective} {adjective2} {trade}
{q} called the {noun} {adjective}
the {noun} seemed {adjective} and {adjective2} to {q}
the {adjective} {noun} was {adjective2}
the whole town {verb} the {noun} of {p}
nobody had seen a more {adjective} {noun}
{q} spoke of the {adjective} {noun}
the {noun} of {p} was {adjective}
{she} was a {adjective} {trade}
""")
THANKS = lines("""
{p} thanked {q} because {she} had been helped; it was {p} who had been helped
{p} thanked {q} because {she} had helped; it was {q} who had helped
{p} scolded {q} because {she} had lied; it was {q} who had lied
{p} asked {q} for help because {she} was weak; it was {p} who was weak
{p} asked {q} for help because {she} was strong; it was {q} who was strong
{p} paid {q} because {she} had worked hard; it was {q} who had worked hard
{p} visited {q} because {she} felt lonely; it was {p} who felt lonely
{p} visited {q} because {she} was ill; it was {q} who was ill
{p} hid from {q} because {she} was afraid; it was {p} who was afraid
{p} hid from {q} because {she} was dangerous; it was {q} who was dangerous
{p} followed {q} because {she} did not know the way; it was {p} who did not know the way
{p} followed {q} because {she} knew the way; it was {q} who knew the way
{p} fed {q} because {she} was hungry; it was {q} who was hungry
{p} called out to {q} because {she} needed advice; it was {p} who needed advice
""")


def happen(scene: Scene) -> None:
    """Tell one event, then what is true now."""
    town, chance = scene.town, scene.chance
    kind = chance.choice(list(HAPPENINGS))
    subject = chance.choice(town.things)
    doer = town.values["owner", subject] if kind == "owner" else town.someone()
    value = town.someone(doer) if kind == "owner" else town.new_value(kind, subject)
    scene.say(chance.choice(HAPPENINGS[kind]).format(p=doer, s=subject, v=value))
    town.change(after := Fact(kind, subject, value))
    if chance.random() < 0.7:
        scene.say(chance.choice(NOW).format(told=scene.tell(after)))


def turn(scene: Scene) -> None:
    """Turn one of the subject's qualities into its opposite."""
    after = scene.one().contrary(scene.chance)
    scene.town.change(after)
    scene.say(scene.chance.choice(TURNS).format(told=scene.tell(after)))


def opinion(
    scene: Scene,
    pleasant: bool,
    person: str,
    other: str,
    noun: str,
    templates: tuple[str, ...],
    words: slice = slice(None),
) -> str:
    """Write a sentence of one polarity about a person, a thing, or what was done; words: which of a
    meaning.
    """
    chance = scene.chance
    moods = chance.choice(lexicon.PLEASANT_MOODS if pleasant else lexicon.UNPLEASANT_MOODS)
    adjective, adjective2 = chance.sample((lexicon.GOOD if pleasant else lexicon.BAD)[words], 2)
    mood, mood2 = chance.sample(moods[words], 2)
    return with_articles(
        chance.choice(templates).format(
            p=person,
            q=other,
            noun=noun,
            adjective=adjective,
            adjective2=adjective2,
            mood=mood,
            mood2=mood2,
            she=scene.town.pronoun(person),
            degree=chance.choice(lexicon.DEGREES),
            verb=chance.choice((lexicon.PRAISES if pleasant else lexicon.BLAMES)[words]),
            trade=chance.choice(lexicon.TRADES),
        )
    )


def mood(scene: Scene) -> None:
    """Write sentences of one polarity."""
    chance = scene.chance
    person = scene.town.someone()
    other, noun = scene.town.someone(person), chance.choice(lexicon.WORKS)
    pleasant = chance.random() < 0.5
    for _ in range(chance.randint(3, 5)):
        templates = OPINION_TEMPLATES if chance.random() < 0.7 else MOOD_TEMPLATES
        text = opinion(scene, pleasant, person, other, noun, templates)
        end = chance.random() < 0.5
        scene.say(f"{text} {chance.choice(JOYS if pleasant else GRIEFS)}" if end else text)
        if chance.random() < 0.3:
            scene.say(
                chance.choice(VERDICTS).format(v="positive" if pleasant else "negative", q=other)
            )


def thank(scene: Scene) -> None:
    """Write a sentence with a pronoun or a name, then whom it means."""
    chance, town = scene.chance, scene.town
    first, second = chance.sample(chance.choice((town.women, town.men)), 2)
    template = chance.choice(THANKS)
    meant = first if "it was {p} " in template else second
    she = chance.choice((town.pronoun(first), meant))
    scene.say(template.format(p=first, q=second, she=she))
