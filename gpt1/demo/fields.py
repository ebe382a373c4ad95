"""Fields of life: each a place, its trade, what one meets there and what is done with it. No word
belongs to two fields.
"""

from typing import NamedTuple


class Field(NamedTuple):
    """`place` and `trade` are nouns; `things` are plurals or stuff, which take no article; `deeds`
    are past forms that take a thing.
    """

    place: str
    trade: str
    things: tuple[str, ...]
    deeds: tuple[str, ...]


def _field(place: str, trade: str, things: str, deeds: str) -> Field:
    return Field(place, trade, tuple(things.split()), tuple(deeds.split()))


FIELDS = tuple(
    _field(*row)
    for row in (
        (
            "bakery",
            "baker",
            "bread flour dough loaves ovens crumbs pies buns yeast pastry",
            "baked kneaded sliced crumbled",
        ),
        (
            "school",
            "teacher",
            "pupils lessons chalk slates spelling ink blackboards homework rulers sums",
            "taught spelled dictated explained",
        ),
        (
            "harbour",
            "sailor",
            "ships sails anchors waves masts ropes gulls nets boats cargo",
            "sailed moored anchored rowed",
        ),
        (
            "farm",
            "farmer",
            "cows hay ploughs fields pigs milk tractors calves barley troughs",
            "ploughed milked harvested reaped",
        ),
        (
            "hospital",
            "doctor",
            "patients nurses bandages medicine fevers beds pills wounds stretchers",
            "bandaged cured healed examined",
        ),
        (
            "theatre",
            "actor",
            "plays curtains stages costumes masks applause scenes tickets audiences",
            "acted rehearsed performed staged",
        ),
        (
            "forest",
            "hunter",
            "deer trees foxes rifles moss antlers owls wolves pines acorns",
            "hunted tracked trapped stalked",
        ),
        (
            "castle",
            "king",
            "crowns thrones knights swords queens princes shields feasts jewels banners",
            "ruled crowned knighted conquered",
        ),
    )
)
