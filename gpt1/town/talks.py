"""What a page says of its subject."""

from gpt1.town import telling
from gpt1.town.scenes import GENRES, Scene
from gpt1.town.telling import clause_of, fill
from gpt1.town.town import PERSON_KINDS, THING_KINDS

REASONS = ("because {0}, {1}", "{0}; therefore {1}", "since {0}, {1}", "{1}, for {0}")


def introduce(scene: Scene) -> None:
    """Tell the two qualities, in some kind of text."""
    chance, town = scene.chance, scene.town
    facts = scene.both()
    chance.shuffle(facts)
    clauses = [scene.word(facts[0]), scene.tell(facts[1])]
    if chance.random() < 0.5:
        clauses.append(
            fill(
                chance.choice(telling.OF_TWO),
                scene.subject,
                town.pronoun(scene.subject),
                v=facts[0].synonym(chance).value,
                w=facts[1].synonym(chance).value,
            )
        )
    scene.say(*chance.choice(GENRES)(scene, clauses))
    scene.named = True


def claim(scene: Scene) -> None:
    """Write a claim that is true, false, or that nobody can tell."""
    chance, fact = scene.chance, scene.one()
    verdict = chance.choices((telling.TRUE, telling.FALSE, telling.UNKNOWN), (0.4, 0.35, 0.25))[0]
    if verdict is telling.UNKNOWN:
        clause = scene.word(scene.unknown())
    elif verdict is telling.FALSE:
        clause = scene.tell(fact.contrary(chance))
    else:
        clause = scene.tell(fact)
    scene.say(f"{scene.who()} said: {clause}", chance.choice(verdict))


def question(scene: Scene) -> None:
    """Ask whether the subject is so, and answer."""
    chance, fact = scene.chance, scene.one()
    kind = chance.random()
    claim = fact if kind < 0.4 else fact.contrary(chance) if kind < 0.8 else scene.unknown()
    scene.say(f"{scene.ask(claim)}?")
    if kind < 0.8:
        scene.say(
            f"{'yes' if kind < 0.4 else 'no'},"
            f" {scene.tell(scene.town.fact(fact.kind, scene.subject))}"
        )
    else:
        scene.say(chance.choice(telling.UNKNOWN))


def quiz(scene: Scene) -> None:
    """Tell what is so, then ask short questions with answers."""
    chance = scene.chance
    scene.say(scene.tell(scene.one()))
    for _ in range(chance.randint(3, 6)):
        fact, kind = scene.one(), chance.random()
        if kind < 0.36:
            scene.say(f"{fact.value}?", "yes")
        elif kind < 0.7:
            scene.say(f"{fact.contrary(chance).value}?", "no")
        else:
            scene.say(f"{scene.unknown().value}?", "perhaps")


def nouns(scene: Scene) -> None:
    """Ask for qualities by their nouns."""
    for kind in scene.chance.sample(scene.qualities, 2):
        fact = scene.town.fact(kind, scene.subject)
        scene.say(
            f"{'its' if scene.subject in scene.town.belongings else 'the'} {kind}?", fact.value
        )


def restate(scene: Scene) -> None:
    """Tell a quality twice, in different words."""
    fact = scene.one()
    scene.say(f"{scene.tell(fact)}; in other words, {scene.tell(fact.synonym(scene.chance))}")


def compare(scene: Scene) -> None:
    """Let two people say or ask the same thing, or not."""
    chance, fact = scene.chance, scene.one()
    same = chance.random() < 0.5
    other = (
        fact.synonym(chance)
        if same
        else fact.contrary(chance)
        if chance.random() < 0.5
        else scene.unknown()
    )
    if chance.random() < 0.5:
        texts = [f"some said: {scene.word(fact)}", f"others said: {scene.word(other)}"]
    else:
        texts = [f"some asked: {scene.ask(fact)}?", f"others asked: {scene.ask(other)}?"]
    scene.say(*texts, chance.choice(telling.SAME if same else telling.DIFFERENT))


def check_answer(scene: Scene) -> None:
    """Ask about a quality, and let somebody answer or not."""
    chance, fact = scene.chance, scene.one()
    good = chance.random() < 0.6
    answer = (
        fact
        if good
        else next(
            scene.town.fact(kind, scene.subject) for kind in scene.qualities if kind != fact.kind
        )
    )
    scene.say(
        f"{chance.choice(telling.ASKING_ABOUT).format(n=fact.kind, s=scene.subject)}?",
        scene.tell(answer),
        chance.choice(telling.ANSWERED if good else telling.NO_ANSWER),
    )


def because(scene: Scene) -> None:
    """Tell what a quality brings about."""
    fact, chance = scene.one(), scene.chance
    cause, effect = clause_of(fact, 0, scene.name()), scene.show(fact)
    scene.say(chance.choice(REASONS).format(cause, effect))


def again(scene: Scene) -> None:
    """Tell one quality or both once more."""
    if scene.chance.random() < 0.5:
        scene.say(scene.tell(scene.one()))
    else:
        first, second = scene.both()
        scene.say(scene.fill(scene.chance.choice(telling.OF_TWO), v=first.value, w=second.value))


def relation(scene: Scene) -> None:
    """Tell who owns what, who lives where."""
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
