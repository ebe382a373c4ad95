"""The words of the made-up towns: names, things, places, trades, moods, by what may be said of
them. No text is taken from anywhere.

Fields of life have each a place, its trade, what one meets there and what is done with it; no word
belongs to two of them.
"""

from typing import NamedTuple


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text."""
    return tuple(text.strip().splitlines())


def _words(text: str, mark: str | None = None) -> tuple[str, ...]:
    """The words of a text, or what stands between marks."""
    return tuple(text.split(mark) if mark is None else text.replace("\n", "").split(mark))


def _names(text: str) -> tuple[str, ...]:
    """The words of a text, with capitals."""
    return tuple(name.capitalize() for name in text.split())


WOMEN = _names("""
ada amy bertha carla cora dinah effie esther fanny gerda hattie hilda irene jenny julia laura lottie maggie maud minnie nelly olive polly
rosa sally stella tessa vera
""")
MEN = _names("""
abel alec andrew ben bruno charles cyril dennis eric francis gilbert harry homer hugo jack jasper john karl leon louis martin morris neil
norman owen philip robert samuel
""")
SURNAME_STARTS = _words(
    "ash bar black brad cold cross dun east elm fair farn green hart hazel hol long mar mill north"
    " oak pen red rock shel stan thorn wal wend west whit win wood beck birch clay crow fen fox"
    " glen hay heath hill lamb lark moss rose sand stock storm swan"
)
SURNAME_ENDS = _words(
    "bank bourne bridge brook bury combe dale field ford grove ham hurst ley more ridge shaw stead"
    " stone ton well"
)
STREET_KINDS = _words("Lane Street Road Hill Row Square")

THINGS = _words("""
accordion apron bag barrel bell bicycle bonnet bottle bracelet bucket candle cape chair cloak comb crown cushion dish easel fiddle fork
glove hammer helmet horn kettle knife lantern mallet mat mug net paintbrush pen plate purse ribbon rope saddle scarf shield sickle spade
suitcase tambourine tent towel trunk
""")
COLOURS = _words(
    "red blue green yellow black white brown grey purple orange pink golden silver crimson violet"
    " scarlet"
)
MATERIALS = _words(
    "wood iron leather glass paper wool clay stone silk copper brass tin straw bone cotton linen"
)
ANIMALS = _words("""
cat dog goat pony rabbit parrot goose hen duck lamb donkey mouse owl raven turtle hedgehog
""")
FOODS = _words("""
apples butter cake cheese chestnuts cream eggs fish ham jam melons mustard olives pancakes peas pickles plums porridge pudding rice
sausages strawberries toast
""")
NUMBERS = _words(
    "nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    " thirty forty fifty sixty seventy eighty ninety"
)

MOODS = (  # each row: words for one mood; the first rows are pleasant ones
    ("happy", "glad", "cheerful", "merry", "joyful", "delighted"),
    ("calm", "peaceful", "quiet", "content", "serene", "relaxed"),
    ("proud", "triumphant", "confident", "pleased", "satisfied", "hopeful"),
    ("sad", "unhappy", "gloomy", "sorrowful", "miserable", "downcast"),
    ("angry", "furious", "cross", "enraged", "indignant", "bitter"),
    ("afraid", "frightened", "scared", "terrified", "anxious", "alarmed"),
)
PLEASANT_MOODS = 3

GOOD = _words("""
admirable beautiful charming delightful elegant excellent fine glorious good lovely marvellous nice perfect pleasant splendid superb
wonderful worthy
""")
BAD = _words("""
annoying awful bad boring clumsy disgusting dreadful dreary ghastly hideous horrible nasty pathetic rotten shabby terrible tiresome vile
""")
PRAISES = _words(
    "praised admired loved enjoyed liked adored welcomed cherished recommended applauded"
)
BLAMES = _words("blamed hated disliked detested despised scolded cursed avoided loathed mocked")
DEGREES = _words("very quite truly rather really so")

WEATHERS = lines("""
it rained
the sun shone
a storm blew
snow fell
fog lay over the roofs
the wind howled
it was hot
it was cold
clouds hung low
frost covered the roofs
hail beat on the roofs
the sky was clear
a breeze rose
thunder rolled
drizzle came down
the air was mild
""")
HOURS = (
    "in the morning",
    "at noon",
    "in the afternoon",
    "in the evening",
    "before breakfast",
    "after lunch",
    "at dusk",
    "at dawn",
    "towards midnight",
    "after supper",
    *(f"on {day}" for day in _names("monday tuesday wednesday thursday friday saturday sunday")),
    *(
        f"one day in {month}"
        for month in _names(
            "january february march april may june july august september october november december"
        )
    ),
    *(
        f"at {feast}"
        for feast in _words(
            "Easter Christmas Whitsun midsummer Michaelmas harvest carnival Candlemas"
        )
    ),
)
DEEDS = _words("""
argued bathed begged bowed breathed camped chatted climbed coughed cried danced dined dozed dreamed drifted fainted fiddled giggled
grumbled hesitated hummed jogged jumped knelt knitted laughed limped lingered listened lounged marched meditated mumbled murmured napped
nodded paced paused pondered posed practised prayed preached rambled rehearsed rested roamed rowed sang sat sewed shivered shouted
shrugged sighed sketched skipped slept smiled sneezed sniffed sobbed spoke stammered stared stood strolled stumbled studied swam sweated
talked tiptoed travelled trembled waited wandered watched waved wept whispered whistled worked worried wrote yawned yelled
""")
MANNERS = _words("""
absently aloud alone anxiously awkwardly blindly boldly bravely briefly busily calmly carefully casually cautiously cheerfully clumsily
coldly constantly daily dreamily eagerly earnestly easily elegantly endlessly faintly feebly fiercely firmly freely gaily gently gladly
gloomily gracefully grimly happily hastily heartily heavily helplessly hungrily idly impatiently jealously joyfully kindly lazily lightly
loudly merrily nervously nightly noisily often openly patiently peacefully playfully politely proudly quickly quietly rarely regularly
restlessly sadly secretly seriously sharply shyly silently sleepily slowly softly solemnly steadily stiffly strangely suddenly sweetly
tenderly tirelessly together warmly wearily wildly wisely abruptly accidentally afresh aimlessly angrily bitterly blissfully carelessly
clearly closely comfortably curiously deeply desperately drowsily dutifully evenly exactly expertly faithfully fondly frankly frequently
generously gravely greedily gruffly heroically humbly innocently intensely keenly leisurely mechanically mildly modestly neatly nimbly
obediently oddly promptly rapidly
""")
WHEREABOUTS = _words(
    """
under an arch|behind a curtain|on the balcony|beside the brook|by the canal|near the cliff|along the coast|in the corridor|among the ferns
|beyond the fence|at the fireside|on the grass|under the hedge|on the hillside|beside the lake|under the lime trees|on the pavement
|along the path|by the pond|behind the pump|beside the river|on the roof|in the shade|by the shore|on the stairs|beside the statue
|along the stream|in the sunshine|under the willow|near the window|at the crossroads|on the doorstep|beside the haystack|in the alley
|behind the chimney|in the loft|across the valley|between the rocks|beneath the oak|around the corner
""",
    "|",
)
WORKS = _words("""
album anthem answer article auction autumn ball ballet banquet bargain beer bouquet breakfast broth cake camp carnival carol carving
ceremony chorus circus coffee comedy concert contest costume dance debate dessert dinner drama drawing dream dress drink essay
excuse exhibition experiment expedition fair feast festival fireworks game gift hairdo hike holiday house hymn idea invention jest jewel
joke journey lecture lesson letter lunch magazine map masquerade match meal melody menu mosaic movie music novel opera orchestra outfit
painting parade performance photograph picnic picture plan play poem portrait poster present prize programme promise proposal pumpkin
puppet puzzle quilt race recipe recital riddle romance room sermon service show sketch song speech statue story supper surprise tale
tapestry theory toy tragedy trick trip tune visit voyage walk waltz wedding wine work
""")
LABOURS = _words("""
arranged baked bought brushed buried caught chopped cleaned collected cooked counted crushed cut delivered drew dropped dried examined
fetched filled folded found fried gathered grew hid hunted imported inspected ironed kicked lifted loaded measured mended mixed ordered
packed peeled picked piled planted polished pressed pulled pushed raked repaired rolled salted saved scattered selected shook sorted sowed
split spread stacked stirred stole swept threw tied tossed traded trimmed unloaded wanted washed weighed wrapped
""")
LOADS = _words("""
acorns almonds bandages beads beans beets berries blossoms boards bolts bricks bundles cables candies cards cartons chips clovers coals
coins corks corn crates crumbs cucumbers daffodils daisies dolls eggshells envelopes fossils garlic gems grains gravel hinges icicles
jars kernels lace leaves letters lilies logs marbles nails newspapers nutshells oats onions packets papers pearls pebbles petals pinecones
pins planks poppies pumpkins radishes reeds rocks roots roses sacks screws seashells seeds shells shirts sheets shoelaces socks spices
sponges stamps sticks stockings strings tiles tickets timber tools towels tulips turnips twigs vegetables violets walnuts weeds wheat wires
axes baskets beakers belts bowls boxes brooms brushes buckles caps clocks clogs combs corkscrews crayons cups curtains cushions drums
eggs feathers figs flags flutes forks funnels gloves goblets grapes hats hazelnuts helmets herbs hooks horns jugs kegs kettles kites ladders
ladles lanterns lids mallets mats melons mirrors mops mugs needles oars oranges pans parasols parcels peaches peanuts pears pencils pens
pipes pitchers plates pots puddings purses quills rags rattles razors ribbons rods rugs saddles sandals saucers scarves scissors shawls
shovels sieves slippers spoons stools straps swings tassels teapots thimbles trays trunks tubs umbrellas urns vases veils wallets
watches wheels whips whistles wreaths
""")


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
