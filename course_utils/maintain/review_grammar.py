"""Constructions of the short film reviews, each with a positive and a negative form.

An opinion is a scale, a pair of words of opposite worth: ("great", "terrible"). A construction has
up to two of them, {x} and {y}. There are three ways to turn a review into its opposite:

- `swapped`: the two opinions change places, "the plot is weak, but the film is great" becomes
  "the plot is great, but the film is weak". Both have the same words: only their order tells.
- `moved`: "not" moves from one opinion to the other. The words stay the same here, too.
- `opposed`: every opinion is replaced by its opposite. Words alone tell, though "not" has to be
  weighed against the word that it denies.

Each review has a verdict that leaves no doubt: it is about the whole film, it is the reviewer's
own (not the critics'), or it is what the reviewer says counts.
"""

from __future__ import annotations

import zlib
from random import Random
from typing import NamedTuple

from course_utils.text.reviews import LARGEST

Scale = tuple[str, str]  # good, bad


def _scales(text: str) -> tuple[Scale, ...]:
    return tuple(tuple(pair.split("/")) for pair in text.split())


# Said of a film or of any part of it; not denied here, because "not superb" is no clear verdict.
STRONG = _scales(
    "great/terrible brilliant/dreadful wonderful/awful excellent/poor superb/weak strong/clumsy "
    "impressive/disappointing outstanding/mediocre remarkable/dismal splendid/hopeless"
)
# Said of a film; to deny the one is to say the other.
FILM = _scales(
    "exciting/boring funny/tedious gripping/sluggish moving/lifeless clever/silly "
    "original/predictable charming/tiresome touching/shallow memorable/forgettable "
    "thrilling/dull entertaining/dreary thoughtful/mindless"
)
# Said of a part of a film; to deny the one is to say the other.
PLAIN = _scales("good/bad strong/weak convincing/clumsy clever/silly original/predictable")
FEELINGS = _scales("loved/hated enjoyed/disliked liked/despised admired/detested")
ADVICE = _scales("watch/avoid see/skip choose/ignore")
MARKS = _scales("nine/two eight/three seven/one")

SLOTS = {
    "film": "the film|the movie|this film|this movie|this comedy|this drama|this thriller|"
    "this western".split("|"),
    "kind": "film|movie|comedy|drama|thriller|western".split("|"),
    "part": "plot|story|script|dialogue|acting|ending|opening|cast|music|camera work|editing|"
    "direction|humour".split("|"),
    "told": "plot|story|script|dialogue|acting|ending|opening".split("|"),
    "other": "the book|the play|the trailer|the sequel|the series|the remake".split("|"),
    "shown": "the sequel|the series|the remake|the stage version".split("|"),
    "people": "the critics|my friends|my parents|my neighbours|most viewers".split("|"),
    "counts": "that is what counts|that is what matters|that decides it for me".split("|"),
}
SLOTS["part2"] = SLOTS["part"]
OPENERS = (
    "I saw it on Friday night.",
    "We watched it at home.",
    "I saw it twice.",
    "It runs for two hours.",
    "We had seats in the front row.",
    "It was the last show of the evening.",
)


class Construction(NamedTuple):
    """A template for each label, with the signs of {x} and {y} in it ("-+": x bad, y good)."""

    scales: tuple[Scale, ...]
    positive: tuple[str, str]
    negative: tuple[str, str]


def swapped(template: str, signs: str, scales: tuple[Scale, ...]) -> Construction:
    """The negative review has the same words with {x} and {y} exchanged."""
    other = template.replace("{x}", "{z}").replace("{y}", "{x}").replace("{z}", "{y}")
    return Construction(scales, (template, signs), (other, signs))


def moved(positive: str, negative: str, signs: str, scales: tuple[Scale, ...]) -> Construction:
    """The negative review has the same words with "not" in another place."""
    return Construction(scales, (positive, signs), (negative, signs))


def opposed(template: str, signs: str, scales: tuple[Scale, ...]) -> Construction:
    """The negative review has the opposite words."""
    return Construction(
        scales, (template, signs), (template, signs.translate(str.maketrans("+-", "-+")))
    )


CONSTRUCTIONS = {
    # the verdict comes last
    "part, but film": swapped("the {part} is {x}, but {film} is {y}.", "-+", STRONG),
    "part, but part": swapped(
        "the {part} is {x}, but the {part2} is {y}, and {counts}.", "-+", STRONG
    ),
    "not x but y": swapped("{film} is not {x} but {y}.", "-+", FILM),
    "expected": swapped("I expected {film} to be {x}, but it is {y}.", "-+", FILM),
    "what could have been": swapped(
        "what could have been a {x} {kind} turned out to be a {y} one.", "-+", FILM
    ),
    "although first": swapped("although the {part} is {x}, {film} is {y}.", "-+", STRONG),
    "despite first": swapped("despite its {x} {part}, {film} is {y}.", "-+", STRONG),
    "nothing, everything": swapped("nothing in {film} is {x}; everything is {y}.", "-+", FILM),
    "they, but I": swapped("{people} found {film} {x}, but I found it {y}.", "-+", FILM),
    "other, but film": swapped("{other} is {x}, but {film} is {y}.", "-+", STRONG),
    "question": swapped("{x}? no, {film} is {y}.", "-+", FILM),
    "their feelings, mine": swapped("{people} {x} {film}, but I {y} it.", "-+", FEELINGS),
    # the verdict comes first
    "x, not y": swapped("{film} is {x}, not {y}.", "+-", FILM),
    "although last": swapped("{film} is {x}, although the {part} is {y}.", "+-", STRONG),
    "despite last": swapped("{film} is {x}, despite its {y} {part}.", "+-", STRONG),
    "rather than": swapped("{film} is {x} rather than {y}.", "+-", FILM),
    "always, never": swapped("{film} is always {x} and never {y}.", "+-", FILM),
    "I, but they": swapped("I found {film} {x}, but {people} found it {y}.", "+-", FILM),
    "film, but other": swapped("{film} is {x}, but {other} is {y}.", "+-", STRONG),
    "my feelings, theirs": swapped("I {x} {film}, but {people} {y} it.", "+-", FEELINGS),
    "advice": swapped("{x} {film} and {y} {shown}.", "+-", ADVICE),
    "marks": swapped("{film} deserves {x} out of ten, not {y}.", "+-", MARKS),
    # which of two is denied
    "not good, but good": moved(
        "{film} is not {x}, but it is {y}, and {counts}.",
        "{film} is {x}, but it is not {y}, and {counts}.",
        "++",
        FILM,
    ),
    "bad, but not bad": moved(
        "the {told} is {x}, but {film} is not {y}.",
        "the {told} is not {x}, but {film} is {y}.",
        "--",
        FILM,
    ),
    # words alone tell
    "not at all": opposed("the {told} is not {x} at all.", "-", PLAIN),
    "for a minute": opposed("I did not find {film} {x} for a minute.", "-", FILM),
    "neither, nor": opposed("{film} is neither {x} nor {y}.", "--", FILM),
    "and": opposed("the {part} is {x} and the {part2} is {y}.", "++", STRONG),
    "with": opposed("with its {x} {part}, {film} is {y}.", "++", STRONG),
    "feeling": opposed("I {x} {film}.", "+", FEELINGS),
}


class Draw(NamedTuple):
    """A positive and a negative review, and the combination of words that both are made of."""

    construction: str
    combination: frozenset[str]
    positive: str
    negative: str


def draw(rng: Random) -> Draw:
    """Fill a construction drawn at random; the same fillers go into both forms."""
    name = rng.choice(list(CONSTRUCTIONS))
    scales, *forms = CONSTRUCTIONS[name]
    fillers = {slot: rng.choice(words) for slot, words in SLOTS.items()}
    while fillers["part2"] == fillers["part"]:
        fillers["part2"] = rng.choice(SLOTS["part2"])
    opener = rng.choice(OPENERS) + " " if rng.random() < 0.3 else ""
    opinions = rng.sample(scales, len(forms[0][1]))
    texts = []
    for template, signs in forms:
        words = [scale[sign == "-"] for scale, sign in zip(opinions, signs, strict=True)]
        text = template.format(**dict(zip("xy", words)), **fillers)
        texts.append(opener + _spell(text))
    met = ["/".join(scale) for scale in opinions]
    if len(met) < 2 or len(scales) < len(PLAIN):  # too few pairs of opinions to hold some out
        met.append(fillers["told" if "{told}" in forms[0][0] else "film"])
    return Draw(name, frozenset(met), *texts)


def _spell(text: str) -> str:
    """A capital at the start and after a question mark; "an" before a vowel."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if word == "a" and words[i + 1][0] in "aeiou":
            words[i] = "an"
        if i == 0 or words[i - 1].endswith("?"):
            words[i] = word[0].upper() + word[1:]
    return " ".join(words)


def review_splits() -> dict[str, list[Draw]]:
    """All couples of reviews that ship, by split."""
    rng, seen = Random("short film reviews"), set()
    found: dict[str, list[Draw]] = {split: [] for split in LARGEST}
    while any(2 * len(found[split]) < LARGEST[split] for split in LARGEST):
        drawn = draw(rng)
        split, texts = _split_of(drawn.combination), (drawn.positive, drawn.negative)
        if 2 * len(found[split]) < LARGEST[split] and seen.isdisjoint(texts):
            seen.update(texts)
            found[split].append(drawn)
    return found


def _split_of(combination: frozenset[str]) -> str:
    """A stable rule: about one combination in seven is held out."""
    return "test" if zlib.crc32(" + ".join(sorted(combination)).encode()) % 7 == 0 else "train"
