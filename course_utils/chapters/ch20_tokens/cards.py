"""The recall cards of chapter 20."""

from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, statement
from course_utils.recall.computed import Number
from course_utils.text.byte_pairs import BytePairs


def _of_seven():
    """Pieces of aaaaaaa after two merges."""
    pairs = BytePairs([(b"a", b"a"), (b"aa", b"aa")])
    return len(pairs._encode_word(b"aaaaaaa"))


def _by_order():
    """Whether lower becomes low, er when l o, lo w, e r, w er were learned in this order."""
    pairs = BytePairs([(b"l", b"o"), (b"lo", b"w"), (b"e", b"r"), (b"w", b"er")])
    return [pairs.pieces[i] for i in pairs._encode_word(b"lower")] == [b"low", b"er"]


CARDS = [
    card(
        "bytes-of-an-accent", "sizes", "bytes", "",
        "How many bytes does é take in UTF-8?",
        Number(lambda: len("é".encode()),
               {1: "Only the 128 characters of ASCII take one byte.",
                3: "Chinese characters take three; letters with accents two.",
                4: "Four is the most; emoji take four."}),
        "ASCII takes one byte, most other alphabets two, Chinese three, emoji four.",
    ),
    card(
        "why-bytes", "idea", "bytes", "",
        "Byte-pair encoding starts from bytes, not from characters. What is gained?",
        Choice(["nothing is ever unknown, in any script", "texts become shorter",
                "no word is cut in the middle"], "a",
               {"b": "Before the first merge a text in bytes is at least as long as in characters.",
                "c": "Words are cut wherever no merge joins their pieces."}),
        "256 bytes spell every text, so no unknown token is needed.",
    ),
    card(
        "merge-while-learning", "idea", "merges", "",
        "Which pair does byte-pair encoding merge next, while it learns?",
        Choice(["the most frequent one", "the longest one", "the leftmost one"], "a",
               {"b": "Length plays no part; frequent pieces may be short.",
                "c": "Where a pair stands plays no part, only how often."}),
        "Counted over all words of the text, each as often as it occurs; ties need a fixed rule.",
    ),
    card(
        "merge-while-encoding", "idea", "merges", "",
        "A word is encoded. Several pairs of neighbours are known merges. Which one is applied?",
        Choice(["the one learned first", "the one most frequent in the word",
                "the one that gives the longest piece"], "a",
               {"b": "Frequency decides only while merges are learned.",
                "c": "That is greedy longest match, another tokenizer."},
               lambda: "a" if _by_order() else "c"),
        "The order of learning is replayed.",
    ),
    card(
        "seven-letters", "sizes", "merges", "",
        "Learned: a + a, then aa + aa. In how many pieces is aaaaaaa (seven letters) encoded?",
        Number(_of_seven,
               {4: "The second merge joins two of the pieces aa.",
                2: "Seven is odd: one letter is left over.",
                6: "A letter belongs to one pair at most."}),
        "aa aa aa a, and then aaaa aa a.",
    ),
    card(
        "size-of-a-vocabulary", "sizes", "counting", "",
        "Four reserved tokens, all bytes, 740 merges that each make a new piece: how large is the "
        "vocabulary?",
        Number(lambda: len(BytePairs()) + 740,
               {740: "The bytes and the reserved tokens have ids, too.",
                996: "The four reserved tokens count as well.",
                744: "The 256 bytes are pieces from the start."}),
        "4 + 256 + 740.",
    ),
    card(
        "loss-per-what", "cost", "averaging", "",
        "Two language models have different vocabularies. Which of their losses may be compared on "
        "one text?",
        Choice(["those per token", "those per byte", "those per update"], "b",
               {"a": "Longer pieces are harder to guess, and there are fewer of them.",
                "c": "An update is no amount of text."}),
        "Summed over the text and divided by its bytes (or characters), the same for both.",
    ),
    card(
        "half-a-character", "idea", "bytes", "",
        "A piece decoded by itself reads �, though the whole text is valid. Why?",
        Choice(["the piece ends in the middle of a character", "the piece is an unknown token",
                "the piece was cut by the wrong merges"], "a",
               {"b": "Over bytes nothing is unknown.",
                "c": "Wrong merges would still be valid bytes, and decode as well or as badly."},
               lambda: "a" if "é".encode()[:1].decode(errors="replace") == "�" else "c"),
        "A character may be spread over several pieces: join the bytes first, then decode.",
    ),
    card(
        "space-and-capital", "idea", "merges", "",
        "dog behind a space, dog behind a bracket, and Dog: one token for all three?",
        statement(False, "The space is part of the piece, and a capital is another byte.",
                  lambda: len({*map(tuple, map(BytePairs().encode, ("dog", "(dog", "Dog")))}) == 1),
        "To the model they are different ids; that they are one word it has to learn.",
    ),
]  # fmt: skip
