"""The words of the made-up towns; no text is from elsewhere."""


def lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text."""
    return tuple(text.strip().splitlines())


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


WOMEN = words("""
Ada Amy Bertha Carla Cora Dinah Effie Esther Fanny Gerda Hattie Hilda Irene Jenny Julia Laura Lottie Maggie Maud Minnie Nelly Olive Polly
Rosa Sally Stella Tessa Vera
""")
MEN = words("""
Abel Alec Andrew Ben Bruno Charles Cyril Dennis Eric Francis Gilbert Harry Homer Hugo Jack Jasper John Karl Leon Louis Martin Morris Neil
Norman Owen Philip Robert Samuel
""")
SURNAME_STARTS = words(
    "ash bar black brad cold cross dun east elm fair farn green hart hazel hol long mar mill north"
    " oak pen red rock shel stan thorn wal wend west whit win wood beck birch clay crow fen fox"
    " glen hay heath hill lamb lark moss rose sand stock storm swan"
)
SURNAME_ENDS = words(
    "bank bourne bridge brook bury combe dale field ford grove ham hurst ley more ridge shaw stead"
    " stone ton well"
)
COMPOUNDS = tuple(f"{start.capitalize()}{end}" for start in SURNAME_STARTS for end in SURNAME_ENDS)
STREET_KINDS = words("Lane Street Road Hill Row Square")

THINGS = words("""
accordion apron bag barrel bell bicycle bonnet bottle bracelet bucket candle cape chair cloak comb crown cushion dish easel fiddle fork
glove hammer helmet horn kettle knife lantern mallet mat mug net paintbrush pen plate purse ribbon rope saddle scarf shield sickle spade
suitcase tambourine tent towel trunk
""")
COLOURS = words(
    "red blue green yellow black white brown grey purple orange pink golden silver crimson violet"
    " scarlet"
)
MATERIALS = words(
    "wood iron leather glass paper wool clay stone silk copper brass tin straw bone cotton linen"
)
ANIMALS = words("""
cat dog goat pony rabbit parrot goose hen duck lamb donkey mouse owl raven turtle hedgehog
""")
FOODS = words("""
apples butter cake cheese chestnuts cream eggs fish ham jam melons mustard olives pancakes peas pickles plums porridge pudding rice
sausages strawberries toast
""")
NUMBERS = words(
    "nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    " thirty forty fifty sixty seventy eighty ninety"
)

# a row: words for one mood
PLEASANT_MOODS = tuple(
    map(
        words,
        lines("""
happy glad cheerful merry joyful delighted
calm peaceful quiet content serene relaxed
proud triumphant confident pleased satisfied hopeful
"""),
    )
)
UNPLEASANT_MOODS = tuple(
    map(
        words,
        lines("""
sad unhappy gloomy sorrowful miserable downcast
angry furious cross enraged indignant bitter
afraid frightened scared terrified anxious alarmed
"""),
    )
)

GOOD = words("""
admirable beautiful charming delightful elegant excellent fine glorious good lovely marvellous nice perfect pleasant splendid superb
wonderful worthy
""")
BAD = words("""
annoying awful bad boring clumsy disgusting dreadful dreary ghastly hideous horrible nasty pathetic rotten shabby terrible tiresome vile
""")
PRAISES = words(
    "praised admired loved enjoyed liked adored welcomed cherished recommended applauded"
)
BLAMES = words("blamed hated disliked detested despised scolded cursed avoided loathed mocked")
DEGREES = words("very quite truly rather really so")

WORKS = words(
    "album ballet book carol concert dance dinner drama essay feast film game hymn joke letter meal"
    " melody novel opera painting parade picnic play poem show song speech story supper tale"
)

PLACES = words("bakery school harbour farm hospital theatre forest castle")
TRADES = words("baker teacher sailor farmer doctor actor hunter king")
