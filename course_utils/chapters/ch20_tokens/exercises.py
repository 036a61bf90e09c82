"""Exercises of notebook 20: byte-pair encoding, and what it does to a text."""

import codecs
import contextlib
import itertools
import math
import re
import sys
from collections import Counter

import torch

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import NotAsAsked

NOTEBOOK = "20_tokens"


def _merged(
    ids, pair, new, *, start="left", where="all", order="as given", second="gone", end="kept"
):
    if where == "as text":
        text = " ".join(map(str, ids)).replace(f"{pair[0]} {pair[1]}", str(new))
        return [int(x) for x in text.split()]
    if where == "alone":
        return [new if i in pair else i for i in ids]

    def fits(i):
        two = (ids[i], ids[i + 1])
        if order == "either id twice, too":
            return {*two} <= {*pair}
        if order == "one of the two":
            return two[0] == pair[0] or two[1] == pair[1]
        return two == tuple(pair) or order == "any" and two == tuple(pair)[::-1]

    found = [i for i in range(len(ids) - 1 - (where == "but the last")) if fits(i)]
    if start != "overlapping":
        free, chosen = set(), []
        for i in found if start == "left" else found[::-1]:
            if not free & {i, i + 1}:
                chosen.append(i)
                free |= {i, i + 1}
                free |= {i + 2} if where == "every other" else set()
        found = sorted(chosen)
    found = found[:1] if where == "first" else found
    covered = {j for i in found for j in (i, i + 1)}
    merged = []
    for i, old in enumerate(ids):
        if i in found:
            merged.append(new)
        elif i in covered and second == "kept" and end == "lost" and i == len(ids) - 1:
            continue  # a loop over pairs never reaches it
        elif i in covered:
            merged += {"gone": [], "kept": [old], "replaced": [new]}[second]
        elif end == "kept" or i < len(ids) - 1:
            merged.append(old)
    return merged


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="one merge, without an overlap",
    text="""
    The whole algorithm rests on one small step. Given a list of ids and a pair of ids, put the id
    `new` in the place of every occurrence of the pair, from left to right. An id can be joined
    once only: in `[7, 7, 7]` the first two become one, and the last 7 stays.
    """,
    reference=_merged,
    probes=[
        ([1, 2, 3, 1, 2], (1, 2), 9),
        ([7, 7, 7], (7, 7), 9),
        ([3], (1, 2), 9),
        ([], (1, 2), 9),
        ([2, 1, 2, 1, 1, 2, 3], (1, 2), 8),
        ([4, 5, 5, 5, 5, 5, 6, 5, 5], (5, 5), 7),
        ([5, 5, 5, 4, 5, 5], (5, 5), 7),
        ([12, 3, 2, 3, 30, 2, 31], (2, 3), 256),
        ([4, 4, 5, 4, 5, 5, 3], (4, 5), 9),
    ],
    mistakes=[
        wrong(
            "an id is used by two pairs",
            "merges",
            "In [7, 7, 7] the middle 7 was joined to both sides: after a merge go on behind both "
            "ids.",
            start="overlapping",
        ),
        wrong(
            "pairs are taken from right to left",
            "merges",
            "In [7, 7, 7] the first two belong together, and the last 7 stays.",
            start="right",
        ),
        wrong(
            "only the first occurrence is merged",
            "merges",
            "The pair is replaced wherever it occurs.",
            where="first",
        ),
        wrong(
            "the id behind a merge is passed over",
            "off by one",
            "Go on with the very next id: one step more, and a pair that begins there is missed.",
            where="every other",
            start="left",
            second="gone",
            order="as given",
        ),
        wrong(
            "the reversed pair is merged as well",
            "merges",
            "(1, 2) and (2, 1) are two pairs: the order of the ids counts.",
            order="any",
        ),
        wrong(
            "any two ids of the pair are merged",
            "merges",
            "The first id has to be pair[0] and the next one pair[1].",
            order="either id twice, too",
            start="left",
            second="gone",
        ),
        wrong(
            "one of the two ids is enough",
            "merges",
            "Both have to fit: ids[i] == pair[0] and ids[i + 1] == pair[1].",
            order="one of the two",
            start="left",
            second="gone",
        ),
        wrong(
            "the second id of the pair stays",
            "merges",
            "The new id stands for both: step over two ids after a merge.",
            {"start": "overlapping"},
            second="kept",
        ),
        wrong(
            "each id of the pair is replaced by the new one",
            "merges",
            "Two ids become one, so the list gets shorter.",
            second="replaced",
        ),
        wrong(
            "ids are replaced without their partner",
            "merges",
            "An id of the pair that stands alone stays: only both, in this order, are merged.",
            where="alone",
            start="left",
            order="as given",
            second="gone",
            end="kept",
        ),
        wrong(
            "ids are compared as text",
            "merges",
            "As text, `12 3` holds `2 3`, and `2 30` begins like it: compare numbers.",
            where="as text",
            start="left",
            order="as given",
            second="gone",
            end="kept",
        ),
        wrong(
            "the last id is lost",
            "off by one",
            "A loop over pairs ends one id early: an id at the end that joins no pair stays.",
            end="lost",
        ),
    ],
    hints=[
        "A for loop over neighbours cannot step over two ids. What kind of loop can?",
        "Or build a new list: look at what you put there last, and at the next id.",
        "With `while i < len(ids)`: where do you go on after a merge, and where otherwise?",
    ],
    right_variants=[
        lambda ids, pair, new: _by_stack(ids, pair, new),
        lambda ids, pair, new: _by_index(ids, pair, new),
        lambda ids, pair, new: _by_recursion(ids, pair, new),
    ],
)
def merge_pair(ids, pair, new):
    """Every occurrence of the pair becomes `new`, from left to right.

    ids: list of integers, pair: two integers, new: one that is not in use yet. Returns a new list.
    """
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def _by_stack(ids, pair, new):
    merged = []
    for i in ids:
        if merged and (merged[-1], i) == pair:
            merged[-1] = new
        else:
            merged.append(i)
    return merged


def _by_index(ids, pair, new):
    ids, i = list(ids), 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i : i + 2] = [new]
        i += 1
    return ids


def _by_recursion(ids, pair, new):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            return [*ids[:i], new, *_by_recursion(ids[i + 2 :], pair, new)]
    return list(ids)


def _next(
    words, times, *,
    weight="times", across=False, tie="smaller", order="as given", count="each", pick="most",
):  # fmt: skip
    if across:
        written = times if weight == "times" else [1] * len(words)
        words = [[i for word, n in zip(words, written) for _ in range(n) for i in word]]
        times = [1]
    counts = Counter()
    for word, often in zip(words, times, strict=True):
        pairs = list(zip(word, word[1:]))
        if count == "apart":  # [7, 7, 7] holds (7, 7) once
            kept, free = [], -1
            for i, pair in enumerate(pairs):
                if pair[0] != pair[1] or i > free:
                    kept.append(pair)
                    free = i + 1 if pair[0] == pair[1] else free
            pairs = kept
        if count == "once a word":
            pairs = list(dict.fromkeys(pairs))
        for pair in pairs[:-1] if count == "but the last" else pairs:
            pair = tuple(sorted(pair)) if order == "any" else pair
            counts[pair] += 1 if weight == "one" else often
    best = (min if pick == "least" else max)(counts.values())
    tied = [pair for pair, n in counts.items() if n == best]
    chosen = {"smaller": min(tied), "larger": max(tied), "first": tied[0], "last": tied[-1]}[tie]
    return [*chosen, best]


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="counting pairs as they are counted in practice",
    text="""
    Which pair is merged next? `words` are lists of ids, and word number i occurs `times[i]` times
    in the text. Count every two neighbours within a word, each as often as the word occurs, and
    return the most frequent pair with its count: `[left, right, count]`. Of equally frequent pairs
    the smaller one wins (compare as Python compares tuples). Neighbours are counted place by
    place, overlaps too: in `[7, 7, 7]` the pair (7, 7) counts twice, though one merge joins only
    two of the three.
    """,
    reference=_next,
    probes=[
        ([[1, 2], [2, 1, 2]], [1, 1]),
        ([[3, 4, 5], [4, 5]], [5, 1]),
        ([[6, 5], [2, 3], [2, 9]], [2, 2, 2]),
        ([[7, 7, 7, 7], [1, 2, 1]], [2, 5]),
        ([[2, 1, 2, 1, 2], [3, 3], [3, 4]], [1, 2, 2]),
        ([[1, 5], [5, 1], [2, 3]], [3, 3, 4]),
        ([[5, 1], [1, 5], [1, 6], [6, 1, 4]], [1, 2, 3, 2]),
        ([[8, 2, 8, 2, 8], [4, 6]], [3, 4]),
        ([[10, 3], [2, 9], [2, 4]], [3, 3, 3]),  # one left id twice
        ([[10, 3], [9, 4]], [2, 2]),  # as text 10 comes before 9
    ],
    mistakes=[
        wrong(
            "the words are not weighted by how often they occur",
            "counting",
            "A pair counts as often as its word occurs in the text, not once for each word.",
            weight="one",
        ),
        wrong(
            "pairs are counted across the ends of words",
            "merges",
            "The last id of a word and the first of the next one are no pair: go word by word.",
            across=True,
        ),
        wrong(
            "of equally frequent pairs the one met first is taken",
            "merges",
            "`Counter.most_common` and `max` keep the first; here the smaller pair wins.",
            tie="first",
        ),
        wrong(
            "of equally frequent pairs the one met last is taken",
            "merges",
            "Here the smaller pair wins, wherever it was met.",
            tie="last",
        ),
        wrong(
            "of equally frequent pairs the larger is taken",
            "merges",
            "`max` over (count, pair) prefers the larger pair; here the smaller one wins.",
            tie="larger",
        ),
        wrong(
            "(a, b) and (b, a) are counted as one pair",
            "merges",
            "The order of two neighbours counts: `on` is not `no`.",
            order="any",
        ),
        wrong(
            "a pair counts once a word, however often it stands there",
            "counting",
            "In [2, 1, 2, 1] the pair (2, 1) stands twice.",
            count="once a word",
        ),
        wrong(
            "the last pair of each word is not counted",
            "off by one",
            "Of n ids the last pair begins at n - 2: let the loop run over range(n - 1).",
            count="but the last",
        ),
        wrong(
            "overlapping neighbours are left out",
            "counting",
            "[7, 7, 7] holds two places where 7 meets 7; only the merge leaves one of them.",
            count="apart",
        ),
        wrong(
            "the rarest pair is taken",
            "merges",
            "The most frequent pair is merged.",
            pick="least",
        ),
    ],
    hints=[
        "zip(word, word[1:]) gives the neighbours of one word.",
        "A Counter adds up: how much does each pair of word number i add?",
        "min over the pairs with a key that puts large counts first, then small pairs.",
    ],
    right_variants=[
        lambda words, times: _by_sorting(words, times),
        lambda words, times: _by_repeating(words, times),
        lambda words, times: torch.tensor(_by_repeating(words, times)),
    ],
)
def next_merge(words, times):
    """The most frequent pair of neighbours and how often it occurs: [left, right, count].

    words: lists of ids, times: how often each word occurs.
    """
    counts = {}
    for word, often in zip(words, times):
        for pair in zip(word, word[1:]):
            counts[pair] = counts.get(pair, 0) + often
    pair = min(counts, key=lambda p: (-counts[p], p))
    return [*pair, counts[pair]]


def _by_sorting(words, times):
    found = {}
    for word, often in zip(words, times):
        for i in range(len(word) - 1):
            pair = word[i], word[i + 1]
            found[pair] = found.get(pair, 0) + often
    left, right = sorted(sorted(found), key=found.get, reverse=True)[0]
    return left, right, found[left, right]


def _by_repeating(words, times):
    """Each word written out as often as it occurs."""
    text = [word for word, often in zip(words, times) for _ in range(often)]
    pairs = [(word[i], word[i + 1]) for word in text for i in range(len(word) - 1)]
    count = max(map(pairs.count, pairs))
    return [*min(pair for pair in pairs if pairs.count(pair) == count), count]


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="following two merges by hand",
    text="""
    Before you run anything: two merges were learned, first `a` + `a`, then `aa` + `aa`. In how many
    pieces is `aaaaaaa` (seven letters) encoded?
    """,
    mistakes=[
        wrong(
            "the second merge is not applied",
            "merges",
            "After the first merge two pieces `aa` stand side by side, and that is a pair, too.",
            answer=4,
        ),
        wrong(
            "the rest is lost",
            "merges",
            "Seven is odd: the last letter finds no partner, and stays a piece of its own.",
            answer=2,
        ),
        wrong(
            "what is left behind aaaa is taken for one piece",
            "merges",
            "No merge makes `aaa`: only `aa` and `aaaa` were learned.",
            answer=2,
        ),
        wrong(
            "all is taken to become one piece",
            "merges",
            "No merge joins `aaaa` with anything.",
            answer=1,
        ),
        wrong(
            "only whole pieces `aaaa` are counted",
            "merges",
            "What is left behind it is encoded, too: nothing of the word is lost.",
            answer=1,
        ),
        wrong(
            "nothing is merged",
            "merges",
            "Every `a` has a neighbour `a`: the first merge applies.",
            answer=7,
        ),
        wrong(
            "overlapping pairs are merged",
            "merges",
            "A letter belongs to one pair at most: seven letters give three pairs and a rest.",
            {"answer": 5},
            answer=6,
        ),
        wrong(
            "one pair of letters is left, and the second merge is not applied",
            "merges",
            "Seven letters hold three pairs one after the other; and two pieces `aa` side by side "
            "are a pair, too.",
            answer=5,
        ),
        wrong(
            "one pair is merged, and the others are left",
            "merges",
            "A merge is made at every place where its pair stands, from left to right; then comes "
            "the next merge.",
            answer=6,
        ),
    ],
    hints=[
        "Apply the first merge from left to right as often as it goes. What stands there?",
        "Then the second one, again from left to right.",
        "After the first merge: aa aa aa a.",
    ],
)
def pieces_of_seven():
    """Number of pieces of aaaaaaa after the merges a + a and aa + aa"""
    return 3


def _chosen(choose, pairs, ranks):
    """Of the neighbours that are merges the pair that is merged next."""
    if choose == "leftmost":
        return pairs[0]
    if choose == "most frequent":
        return max(pairs, key=lambda pair: (pairs.count(pair), -ranks[pair]))
    if choose == "most frequent, first met":
        return max(pairs, key=pairs.count)
    return (max if choose == "last learned" else min)(pairs, key=ranks.get)


def _encoded(
    word, merges, *, choose="first learned", rounds="all", first=256, where="all", at="all"
):
    ranks = {tuple(pair): k for k, pair in enumerate(merges)}
    first = len(merges) if first == "as many as merges" else first
    spelled = {}

    def spell(i):
        if i < 256:
            return (i,)
        if i not in spelled:
            spelled[i] = tuple(x for part in merges[i - 256] for x in spell(part))
        return spelled[i]

    if choose == "longest":
        pieces = {spell(256 + k): 256 + k for k in reversed(range(len(merges)))}
        out, i = [], 0
        while i < len(word):
            for n in range(len(word) - i, 0, -1):
                piece = tuple(word[i : i + n])
                if n == 1 or piece in pieces:
                    out.append(pieces[piece] - 256 + first if n > 1 else word[i])
                    i += n
                    break
    elif choose == "once through":
        out, i = list(word), 0
        while i < len(out) - 1:
            if (pair := tuple(out[i : i + 2])) in ranks:
                out[i : i + 2] = [first + ranks[pair]]
            else:
                i += 1
    elif choose == "leftmost, one place at a time":
        out = list(word)
        while known := [i for i, pair in enumerate(zip(out, out[1:])) if pair in ranks]:
            out[known[0] : known[0] + 2] = [first + ranks[tuple(out[known[0] : known[0] + 2])]]
    elif choose == "a whole round":
        out = list(word)
        while pairs := sorted({p for p in zip(out, out[1:]) if p in ranks}, key=ranks.get):
            for pair in pairs:
                out = _merged(out, pair, first + ranks[pair])
    elif choose == "unknown first":
        out = list(word)
        while len(out) > 1:
            pair = min(zip(out, out[1:]), key=lambda pair: ranks.get(pair, 0))
            if pair not in ranks:
                break
            out = _merged(out, pair, first + ranks[pair], where=where)
    elif choose == "backwards" or where == "first" or at != "all":
        out, numbers = list(word), range(len(merges))
        form = {
            "last id lost": {"end": "lost"},
            "from the right": {"start": "right"},
            "second kept": {"start": "overlapping", "second": "kept"},
            "second kept, end lost": {"start": "overlapping", "second": "kept", "end": "lost"},
            "either order": {"order": "any"},
            "last pair missed": {"where": "but the last"},
        }.get(at, {})
        for k in reversed(numbers) if choose == "backwards" else numbers:
            before, out = out, _merged(out, merges[k], first + k, **{"where": where} | form)
            if rounds == "one" and out != before:
                break
    else:
        out = list(word)
        while pairs := [p for p in zip(out, out[1:]) if p in ranks]:
            pair = _chosen(choose, pairs, ranks)
            out = _merged(out, pair, first + ranks[pair])
            if rounds == "one":
                break
    return out


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="encoding by the order of merges",
    text="""
    Encode one word. `word` is a list of bytes (numbers below 256); `merges` lists pairs of ids in
    the order in which they were learned, and merge number k, counted from 0, makes the id
    `256 + k`. As long as some pair of neighbours is a merge, apply the one that was learned first,
    wherever it occurs.
    """,
    reference=_encoded,
    probes=[
        ([1, 2, 3], [(1, 2), (256, 3)]),
        ([1, 2, 3, 4], [(2, 3), (1, 2), (3, 4), (256, 4)]),
        ([1, 2, 1, 2, 3, 4, 3], [(3, 4), (1, 2), (4, 3), (257, 256)]),
        ([5, 1, 2, 5, 1, 2, 2, 5], [(2, 5), (5, 1), (1, 2), (257, 2), (258, 256)]),
        (
            [1, 2, 3, 1, 2, 3, 4, 5],
            [(4, 5), (3, 4), (2, 3), (1, 2), (1, 258), (3, 256), (260, 261)],
        ),
        ([1, 2, 3, 4, 2, 3], [(3, 4), (1, 2), (257, 3), (2, 3)]),
        ([7, 7, 7, 7, 7], [(7, 7), (256, 256)]),
        ([1, 2, 3, 4], [(1, 2), (256, 3), (3, 4)]),
        ([9, 8], [(1, 2)]),
    ],
    mistakes=[
        wrong(
            "all pairs of a round are merged before the word is looked at again",
            "merges",
            "Look again after each merge: it may have made a pair that was learned earlier.",
            choose="a whole round",
        ),
        wrong(
            "the leftmost pair is merged first",
            "merges",
            "Of all pairs that are merges the one learned first goes first, wherever it stands.",
            {"choose": "leftmost, one place at a time"},
            choose="leftmost",
        ),
        wrong(
            "the word is gone through once, from left to right",
            "merges",
            "The merge learned first goes first, wherever it stands; and what it made may fit what "
            "stands before it.",
            choose="once through",
            where="all",
            at="all",
            rounds="all",
        ),
        wrong(
            "the pair that is most frequent in the word is merged first",
            "merges",
            "Frequency decides while merges are learned; to encode, only their order counts.",
            {"choose": "most frequent, first met"},
            choose="most frequent",
        ),
        wrong(
            "the merge learned last is applied first",
            "merges",
            "Begin with the oldest merge: the later ones join what it has made.",
            {"choose": "backwards"},
            choose="last learned",
        ),
        wrong(
            "the longest known piece is taken, from left to right",
            "merges",
            "That is greedy longest match, another method; here merges are applied in order.",
            choose="longest",
        ),
        wrong(
            "each merge is applied at one place only",
            "merges",
            "A merge joins its pair wherever it stands in the word.",
            where="first",
            at="all",
        ),
        wrong(
            "each merge loses the last id",
            "off by one",
            "A loop over pairs ends one id early: an id at the end that joins no pair stays.",
            at="last id lost",
            choose="first learned",
        ),
        wrong(
            "the second id of each pair stays",
            "merges",
            "Go on two ids behind a pair that was joined, and keep an id at the end that "
            "joins none.",
            {"at": "second kept, end lost"},
            at="second kept",
            choose="first learned",
            where="all",
        ),
        wrong(
            "the last pair of the word is not looked at",
            "off by one",
            "Of n ids the last pair begins at n - 2: let the loop run over range(n - 1).",
            at="last pair missed",
            choose="first learned",
            where="all",
        ),
        wrong(
            "a pair is joined in either order",
            "merges",
            "(1, 2) and (2, 1) are two pairs: compare both places in turn.",
            at="either order",
            choose="first learned",
            where="all",
        ),
        wrong(
            "a pair that is no merge comes first of all",
            "merges",
            "ranks.get(pair, 0) puts it before the merges, and the loop ends: give it math.inf.",
            {"where": "first"},
            choose="unknown first",
            where="all",
            at="all",
            rounds="all",
        ),
        wrong(
            "each merge runs from right to left",
            "merges",
            "Of [7, 7, 7] the first two are joined: go from left to right.",
            at="from the right",
            choose="first learned",
        ),
        wrong(
            "only one merge is applied",
            "merges",
            "After a merge look again: what it made may be half of a later merge.",
            rounds="one",
        ),
        wrong(
            "the new ids do not begin at 256",
            "off by one",
            "Bytes take 0 to 255, so merge number 0 makes the id 256; later merges rely on it.",
            {"first": 0},
            {"first": 0, "at": "in turn"},
            {"first": 255},
            {"first": "as many as merges"},
            first=257,
        ),
    ],
    hints=[
        "A dictionary from pair to its place in `merges` tells quickly whether, and when, it was "
        "learned.",
        "Among the neighbours that are in it, which one has the smallest place?",
        "Replace it everywhere, as in merge_pair, and look again, until no neighbours are a merge.",
    ],
    right_variants=[
        lambda word, merges: _in_one_pass(word, merges),
        lambda word, merges: _place_by_place(word, merges),
        lambda word, merges: tuple(_in_one_pass(list(word), [tuple(pair) for pair in merges])),
    ],
)
def encode_word(word, merges):
    """The ids of a word: the merge that was learned first is applied first.

    word: list of bytes, merges: list of pairs of ids. Returns a list of ids.
    """
    ranks = {tuple(pair): k for k, pair in enumerate(merges)}
    ids = list(word)
    while pairs := [pair for pair in zip(ids, ids[1:]) if pair in ranks]:
        first = min(pairs, key=ranks.get)
        merged = []
        for i in ids:
            if merged and (merged[-1], i) == first:
                merged[-1] = 256 + ranks[first]
            else:
                merged.append(i)
        ids = merged
    return ids


def _in_one_pass(word, merges):
    ids = list(word)
    for k, pair in enumerate(merges):
        ids = _by_index(ids, pair, 256 + k)
    return ids


def _place_by_place(word, merges):
    """One place at a time, the oldest merge first and of its places the leftmost."""
    ids = list(word)
    while True:
        found = [
            (merges.index(pair), i) for i, pair in enumerate(zip(ids, ids[1:])) if pair in merges
        ]
        if not found:
            return ids
        k, i = min(found)
        ids[i : i + 2] = [256 + k]


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=2,
    trains="telling from pieces how they were made",
    text="""
    These merges were learned, in this order: `l` + `o`, `lo` + `w`, `e` + `r`, `w` + `er`. A
    colleague's program encodes `lower` as `lo` `wer`. What does it do?

    `"a"`: it applies the merges in the order of learning, as it should. `"b"`: of the merges that
    fit it applies the one learned last. `"c"`: it takes the longest known piece, from left to
    right. `"d"`: it applies one merge only.
    """,
    mistakes=[
        wrong(
            "the result is taken for the right one",
            "merges",
            "`lo` + `w` was learned before `w` + `er`: it comes first and takes the w.",
            answer="a",
        ),
        wrong(
            "the longest piece is thought to be shorter",
            "merges",
            "From the left the longest known piece of `lower` is `low`, not `lo`.",
            answer="c",
        ),
        wrong(
            "the number of merges is not counted",
            "merges",
            "`wer` alone takes two merges, and `lo` a third.",
            answer="d",
        ),
    ],
    hints=[
        "Write down which pieces each of the four ways gives.",
        "In the right order: l o w e r, lo w e r, low e r, ...",
        "Which merge must have come before `lo` + `w` had its turn?",
    ],
)
def encoder_slip():
    """The letter of what the program does"""
    return "b"


def _streamed(pieces, *, halves="wait", holds="bytes", says="new", reads="utf-8", entries="all"):
    if reads == "latin-1":
        texts = [piece.decode("latin-1") for piece in pieces]
    elif halves in ("replace", "ignore"):
        texts = [piece.decode("utf-8", errors=halves) for piece in pieces]
    elif halves == "shown":
        whole = [b"".join(pieces[: i + 1]).decode(errors="replace") for i in range(len(pieces))]
        whole = [text.rstrip("\ufffd") for text in whole] if holds == "marks" else whole
        texts = [text[len(before) :] for before, text in zip(["", *whole], whole)]
    elif holds == "lengths":
        text = b"".join(pieces).decode()
        ends = [*itertools.accumulate(map(len, pieces), initial=0)]
        texts = [text[begin:end] for begin, end in itertools.pairwise(ends)]
    elif holds == "shown bytes":
        whole = [b"".join(pieces[: i + 1]).decode(errors="ignore") for i in range(len(pieces))]
        begun = itertools.accumulate(map(len, pieces), initial=0)
        texts = [text[n:] for text, n in zip(whole, begun)]
    elif holds in ("letters", "one byte", "until shown", "new text", "the last count"):
        texts, waiting, before = [], b"", ""
        for piece in pieces:
            waiting += piece
            text = waiting.decode(errors="ignore")
            if holds in ("new text", "the last count"):
                new = text.replace(before, "") if before else text
                texts.append(new if holds == "new text" else text[len(before) :])
                before = text if holds == "new text" else texts[-1]
                continue
            texts.append(text)
            waiting = {
                "letters": waiting[len(text) :],
                "one byte": waiting[len(text.encode()) :][-1:],
                "until shown": b"" if text else waiting,
            }[holds]
    elif holds in ("pieces", "two bytes"):
        texts, waiting = [], b""
        for piece in pieces:
            waiting += piece
            for cut in range(1 if holds == "pieces" else 3):
                end = len(waiting) - cut
                with contextlib.suppress(UnicodeDecodeError):
                    texts.append(waiting[:end].decode())
                    waiting = waiting[end:]
                    break
            else:
                texts.append("")
    else:
        decoder = codecs.getincrementaldecoder("utf-8")()
        texts = [decoder.decode(piece) for piece in pieces]
    kept = [i for i, text in enumerate(texts) if text or entries == "all"]
    if says == "all":
        whole = whole if halves == "shown" else [*itertools.accumulate(texts)]
        return [whole[i] for i in kept]
    texts = [texts[i] for i in kept]
    if says == "stripped":
        whole = ["".join(texts[: i + 1]).strip() for i in range(len(texts))]
        return [text[len(before) :] for before, text in zip(["", *whole], whole)]
    if says == "each stripped":
        return [text.strip() for text in texts]
    if says == "at the end":
        return [""] * (len(texts) - 1) + ["".join(texts)]
    return texts


def _with_boxes(answer, pieces):
    """With ␣ for a space, so that a lost space shows."""
    shown = answer(pieces)
    if not isinstance(shown, (list, tuple)) or not all(isinstance(t, str) for t in shown):
        raise NotAsAsked("a list of strings is due, one for each piece; that is not what came")
    return [text.replace(" ", "␣") for text in shown]


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="decoding while a model writes",
    text="""
    A model writes piece by piece, and a chat window shows the text as it comes. A piece may end in
    the middle of a character: `caf\\xc3` is `caf` and the first half of an é. Given the pieces
    (bytes, together valid UTF-8), return for each what can be shown *newly* after it: all
    characters that are complete by now and were not shown before. Half characters wait for their
    other half; nothing complete waits.
    """,
    reference=_streamed,
    play=_with_boxes,
    probes=[
        ([b"caf\xc3", b"\xa9 noir"],),
        ([b" Tom", b" a", b" dit"],),
        ([b"\xe9\x9d", b"\xa2\xe5\x8c", b"\x85", b"!"],),
        ([b"a\xf0\x9f", b"\x8d\x9eb", b"\xc3", b"\xa9"],),
        ([b"ha", b" ha", b" h\xc3", b"\xa9", b"\xc3\xa9", b"ha"],),
        ([b"\xf0", b"\x9f", b"\x8d", b"\x9e", b"\xe5\x8c\x85"],),
        ([b"a\xef\xbf\xbd", b"b\xef", b"\xbf\xbd"],),  # U+FFFD is a character, too
        ([b"ab\xf0\x9f\x8d", b"\x9ec"],),  # three bytes wait behind what is complete
    ],
    mistakes=[
        wrong(
            "each piece is decoded alone, and halves become a replacement character",
            "bytes",
            "Half a character is not broken, only unfinished: keep its bytes until the rest comes.",
            halves="replace",
        ),
        wrong(
            "half a character is shown as a replacement character",
            "bytes",
            "Decode only what is complete: the bytes of a half character wait.",
            halves="shown",
            holds="bytes",
        ),
        wrong(
            "a real \N{REPLACEMENT CHARACTER} at the end is taken for half a character",
            "bytes",
            "U+FFFD is a character like any other, three bytes long: whether bytes are complete is "
            "seen from the bytes, not from what `replace` makes of them.",
            halves="shown",
            holds="marks",
        ),
        wrong(
            "each piece is decoded alone, and halves are thrown away",
            "bytes",
            "Characters that are cut never appear; keep their bytes until the rest comes.",
            halves="ignore",
        ),
        wrong(
            "what is complete waits with the half character behind it",
            "bytes",
            "Of `caf\\xc3` the letters `caf` can be shown at once; only \\xc3 has to wait, and at "
            "most three bytes.",
            {"holds": "two bytes"},
            holds="pieces",
        ),
        wrong(
            "shown characters are counted where bytes are due",
            "bytes",
            "What is shown is to be cut off the bytes that wait: é is one character and two bytes.",
            holds="letters",
        ),
        wrong(
            "bytes are counted where shown characters are due",
            "bytes",
            "The text so far is cut behind the characters that were shown: é is two bytes and one "
            "character.",
            holds="shown bytes",
        ),
        wrong(
            "the whole text is cut by the lengths of the pieces in bytes",
            "bytes",
            "é is two bytes and one character, and what has not come yet cannot be shown: decode "
            "what has come, piece by piece.",
            holds="lengths",
        ),
        wrong(
            "only one byte waits",
            "bytes",
            "Of a character of four bytes up to three may have come: all of them wait.",
            holds="one byte",
        ),
        wrong(
            "half a character is dropped when something is shown before it",
            "bytes",
            "Of `caf\\xc3` the letters are shown, and \\xc3 has to stay for the next piece.",
            holds="until shown",
        ),
        wrong(
            "text that was shown is removed wherever it occurs",
            "bytes",
            "What is new may read like what was there: cut off the length of what was shown.",
            holds="new text",
        ),
        wrong(
            "only what was shown last is cut off",
            "bytes",
            "Everything shown so far is cut off: add the lengths up.",
            holds="the last count",
        ),
        wrong(
            "spaces at the ends are lost",
            "bytes",
            "The space between two words comes at the end or the beginning of a piece: show it.",
            {"says": "each stripped"},
            says="stripped",
        ),
        wrong(
            "a piece that completes nothing has no entry",
            "bytes",
            "One string for each piece: an empty one where nothing is complete.",
            entries="some",
        ),
        wrong(
            "the whole text so far is given each time",
            "bytes",
            "Asked is what is new after each piece.",
            says="all",
        ),
        wrong(
            "all is shown at the end",
            "bytes",
            "Nothing that is complete waits: each piece shows what it completes.",
            says="at the end",
        ),
        wrong(
            "every byte is taken for a character",
            "bytes",
            "é is two bytes, 面 is three: decode UTF-8, not latin-1.",
            reads="latin-1",
        ),
    ],
    hints=[
        "Keep the bytes that could not be shown yet, and put the next piece behind them.",
        "A character of UTF-8 has at most 4 bytes, so at most 3 have to wait: how many of the last "
        "bytes must be left out until the rest decodes?",
        "The standard library knows this as an incremental decoder, in the module codecs.",
    ],
    right_variants=[
        lambda pieces: _by_trying(pieces),
        lambda pieces: _by_difference(pieces),
        lambda pieces: _by_first_bytes(pieces),
    ],
)
def shown_so_far(pieces):
    """What each piece newly shows, of a text that is written piece by piece.

    pieces: list of bytes. Returns a list of strings, one for each piece.
    """
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    return [decoder.decode(piece) for piece in pieces]


def _by_trying(pieces):
    shown, waiting = [], b""
    for piece in pieces:
        waiting += piece
        for cut in range(len(waiting), -1, -1):
            try:
                text = waiting[:cut].decode()
            except UnicodeDecodeError:
                continue
            shown.append(text)
            waiting = waiting[cut:]
            break
    return shown


def _by_difference(pieces):
    whole = [b"".join(pieces[: i + 1]).decode(errors="ignore") for i in range(len(pieces))]
    return [text[len(before) :] for before, text in zip(["", *whole], whole)]


def _by_first_bytes(pieces):
    """The first byte of a character says how many it has."""
    shown, waiting = [], b""
    for piece in pieces:
        text = ""
        for byte in piece:
            waiting += bytes([byte])
            first = waiting[0]
            if len(waiting) == (1 if first < 0x80 else 2 if first < 0xE0 else 3 + (first >= 0xF0)):
                text, waiting = text + waiting.decode(), b""
        shown.append(text)
    return shown


def _bits(losses, text, *, add="sum", unit="bits", over="bytes", way="down"):
    total = losses.sum() if add == "sum" else losses.mean()
    total = {"bits": total / math.log(2), "nats": total, "times": total * math.log(2),
             "tens": total / math.log(10)}[unit]  # fmt: skip
    size = {"bytes": len(text.encode()), "characters": len(text), "words": len(text.split()),
            "tokens": len(losses), "bits": 8 * len(text.encode()),
            "two each": sum(1 + (c > "\x7f") for c in text),
            "object": sys.getsizeof(text.encode()),
            "utf-16": len(text.encode("utf-16")),
            "without spaces": len("".join(text.split()).encode()),
            "stripped": len(text.strip().encode())}[over]  # fmt: skip
    rate = total / size
    return {"down": rate, "up": size / total, "power": 2**rate}[way]


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="a loss that does not depend on the vocabulary",
    text="""
    Papers compare models with different vocabularies in **bits per byte**: how many bits a model
    needs, on average, to write down one byte of the text. `losses` is the cross-entropy of each
    token of the text, in nats (natural logarithms), as `F.cross_entropy` gives it. One bit is ln 2
    nats. Return the bits per byte of `text`, encoded in UTF-8.
    """,
    reference=_bits,
    probes=[
        (torch.tensor([0.5, 4.0]), "面包 pain"),
        (torch.tensor([2.0, 1.0, 3.0]), "le café"),
        (torch.tensor([1.5, 2.5, 0.25, 1.0, 3.25]), "Tom said naïve words"),
        (torch.tensor([1.0, 2.0, 0.5, 3.0]), " deux cafés \n"),
    ],
    edges=[("where the text is long", (torch.full((60,), 2.0), 20 * "du pain, "))],
    mistakes=[
        wrong(
            "the mean of the tokens is taken, not their sum",
            "averaging",
            "What one token costs says little; add up the whole text, then divide by its bytes.",
            add="mean",
        ),
        wrong(
            "it is divided by the number of tokens",
            "averaging",
            "Then a vocabulary with longer pieces looks worse for its longer pieces alone.",
            over="tokens",
        ),
        wrong(
            "it is divided by the number of characters",
            "bytes",
            "é is one character and two bytes: count len(text.encode()).",
            over="characters",
        ),
        wrong(
            "all characters beyond ASCII are counted as two bytes",
            "bytes",
            "é has two bytes, 面 three, and some have four: count len(text.encode()).",
            over="two each",
        ),
        wrong(
            "the size of an object in memory is taken",
            "bytes",
            "sys.getsizeof counts what Python keeps beside the bytes; len counts the bytes.",
            over="object",
        ),
        wrong(
            "spaces at the ends of the text are left out",
            "bytes",
            "The model has to write them, too: count all bytes of the text.",
            over="stripped",
        ),
        wrong(
            "spaces are left out",
            "bytes",
            "The model has to write them, too: count all bytes of the text.",
            over="without spaces",
        ),
        wrong(
            "the text is encoded in UTF-16",
            "bytes",
            "Asked is UTF-8, what text.encode() gives; UTF-16 takes two bytes a letter, and two to "
            "begin.",
            over="utf-16",
        ),
        wrong(
            "it is divided by the number of words",
            "averaging",
            "Asked are bits per byte.",
            over="words",
        ),
        wrong(
            "it is divided by the bits of the text",
            "bytes",
            "Asked are bits for one byte: divide by the number of bytes, not by 8 times as many.",
            over="bits",
        ),
        wrong(
            "the result is in nats",
            "scale",
            "One bit is ln 2 = 0.693 nats: divide by it.",
            unit="nats",
        ),
        wrong(
            "nats are multiplied by ln 2",
            "scale",
            "A nat is more than a bit, so the number has to grow: divide by ln 2.",
            unit="times",
        ),
        wrong(
            "the decimal logarithm is used",
            "scale",
            "Bits belong to the logarithm to base 2: divide nats by ln 2.",
            unit="tens",
        ),
        wrong(
            "bytes per bit are given",
            "averaging",
            "Asked is bits divided by bytes, not the other way round.",
            way="up",
        ),
        wrong(
            "2 to the power of the bits is given",
            "perplexity",
            "That is a perplexity of bytes; asked are the bits themselves.",
            way="power",
        ),
    ],
    hints=[
        "How many nats does the whole text cost?",
        "How many bytes has it? len(text) counts characters.",
        "math.log(2) is ln 2; is the number in bits larger or smaller than that in nats?",
    ],
    right_variants=[
        lambda losses, text: float(losses.sum()) / len(text.encode("utf-8")) / math.log(2),
        lambda losses, text: losses.sum().item() * math.log2(math.e) / len(bytes(text, "utf-8")),
        lambda losses, text: torch.log2(losses.exp()).sum() / len(text.encode()),
    ],
)
def bits_per_byte(losses, text):
    """Bits that a model needs for one byte of a text.

    losses: (T,) cross-entropy of each token in nats, text: a string. Returns a number.
    """
    return losses.sum() / math.log(2) / len(text.encode())


def _number_rules(answer, text):
    """What is asked of a splitter, whatever its design: each property, and whether it has it."""
    pieces = answer(text)
    if not isinstance(pieces, (list, tuple)) or not all(isinstance(p, str) for p in pieces):
        raise NotAsAsked("a list of strings is due, and something else came back")
    digits = [piece for piece in pieces if re.search("[0-9]", piece)]
    ends, at = set(), 0  # of pieces, as places in the text
    for piece in pieces:
        start = max(text.find(piece, at), at)  # further on where some text before it is lost
        at = start + len(piece)
        ends |= {start, at}
    runs = [match.span() for match in re.finditer("[0-9]+", text)]
    return {
        "gives the text back when joined": "".join(pieces) == text,
        "has no empty piece": all(pieces),
        "keeps digits apart from all else": all(re.fullmatch("[0-9]+", p) for p in digits),
        "has at most three digits a piece": all(len(re.findall("[0-9]", p)) <= 3 for p in pieces),
        "groups digits from the right": all(
            (end - place) % 3 == 0
            for start, end in runs
            for place in ends
            if start < place < end
        ),
        "cuts no word": all(
            not any(m.start() < place < m.end() for place in ends)
            for m in re.finditer("[a-zA-Z]+", text)
        ),
    }  # fmt: skip


def _numbers(
    text, *, group="right", apart=True, most=3, lost="nothing", words="whole", empty=False
):
    found, before = [], 0  # pieces before the last run of digits
    for run in re.findall("[0-9]+|[^0-9]+", text):
        if not run[0].isdigit():
            if lost == "digits" and run[0].isalpha():
                found = found[:before]
            letters = list(run) if words == "cut" else re.findall(r" ?[^ ]+|\s+", run)
            found += letters
            before = len(found)
            continue
        first = len(run) % most if group == "right" else 0
        parts = [run[:first]] if first else []
        parts += [run[i : i + most] for i in range(first, len(run), most)]
        if not apart and found:
            parts[0] = found.pop() + parts[0]
        found += parts
    found = [p.strip() for p in found if p.strip()] if lost == "spaces" else found
    found = [p for q in found if (p := q.replace("\n", ""))] if lost == "line breaks" else found
    return ["", *found] if empty else found


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="designing what merges may not cross",
    text="""
    **An open task**: many answers are right, and only what is asked here is checked. The translator
    of this chapter cuts numbers unevenly. What no merge crosses is decided before the merges, by
    the splitter. Design one, `split_fairly(text)`, that returns pieces of the text (a list of
    strings) with these properties: (1) joined, they give the text back, and none is empty; (2) a
    piece with digits (0 to 9) holds nothing else; (3) none has more than three digits; (4) the
    digits of a number are grouped from the right, as people write them: `1|234|567`; (5) no run of
    the letters a to z, small or capital, is cut.
    """,
    reference=_numbers,
    play=_number_rules,
    probes=[
        ("He paid 12345 euros.",),
        ("In 1987 a loaf cost 3.50",),
        ("1234567",),
        ("Flour for bread, said Tom.",),
        ("A4 paper, 80g, 210x297",),
        ("Room 0042, agent 007",),
        (" 12345 x\n2000",),
        ("10\u00b2 or 1\u0663 or 4\u00bd",),  # other signs for numbers are no digits 0 to 9
    ],
    mistakes=[
        wrong(
            "digits are grouped from the left",
            "merges",
            "Property 4: 12345 is 12|345, so that the last group always holds the ones.",
            group="left",
        ),
        wrong(
            "digits share a piece with something else",
            "merges",
            "Property 2: the space before a number, a letter, or another sign for a number (`\\d` "
            "takes \u0663 along, `isdigit` \u00b2, too) needs a piece of its own.",
            apart=False,
        ),
        wrong(
            "a piece has more than three digits",
            "merges",
            "Property 3: longer numbers are cut into groups.",
            most=6,
        ),
        wrong(
            "some of the text is lost",
            "merges",
            "Property 1: spaces count too; join the pieces and compare with the text.",
            lost="spaces",
        ),
        wrong(
            "line breaks are lost",
            "merges",
            'Property 1: what is lost is "\\n": in a regular expression `.` stands for any '
            "character but this one; [^0-9] takes it along.",
            lost="line breaks",
        ),
        wrong(
            "digits before a letter are lost",
            "merges",
            "Property 1: in 80g a regular expression sees no end of a word (\\b) behind 80; say "
            "that no digit follows, (?![0-9]).",
            lost="digits",
        ),
        wrong(
            "there are empty pieces",
            "merges",
            "Property 1: re.split gives empty strings between two matches and at the ends.",
            empty=True,
        ),
        wrong(
            "words are cut",
            "merges",
            "Property 5: a run of letters stays whole, so that merges can work inside it.",
            words="cut",
        ),
    ],
    hints=[
        "re.findall with two alternatives, digits and the rest, keeps every character.",
        "Cut a run of digits from its right end. How many digits does the first group have?",
        "len(run) % 3 digits come first; if that is 0, there is no short group.",
    ],
    right_variants=[
        lambda text: re.findall(r"[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))|[^0-9]+", text),
        lambda text: re.findall(
            r"[a-zA-Z]+|[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))|[^a-zA-Z0-9]", text
        ),
        lambda text: [p for run in re.split("([0-9]+)", text) if run for p in _grouped(run)],
    ],
)
def split_fairly(text):
    """Pieces of a text that no merge may cross, with digits in groups of three from the right.

    text: a string. Returns a list of strings.
    """
    import re

    # a group of at most three digits is followed by whole groups of three, then by no digit
    return re.findall(r"[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))|[^0-9]+", text)


def _grouped(run):
    """A run of digits in threes from the right; anything else as it is."""
    if not run.isdigit():
        return [run]
    backwards = [run[::-1][i : i + 3] for i in range(0, len(run), 3)]
    return [group[::-1] for group in reversed(backwards)]
