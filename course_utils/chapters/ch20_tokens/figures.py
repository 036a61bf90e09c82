"""How two words grow from their bytes, and what the size of a vocabulary changes."""

from course_utils.text.byte_pairs import BytePairs, split_words
from course_utils.viz import plot_curves
from course_utils.viz.canvas import FAINT, SMALL, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, ORANGE

SENTENCE = '"Flour for bread," said Tom. "Bread for flour," said Anna.'
_UP, _SIDE = 0.52, 0.62  # inches between rows and between letters


def _shown(piece):
    return piece.decode().replace(" ", "·")


def _grow(sheet, word, merges, left, shared):
    """One word: its bytes at the bottom, and above them what each merge makes."""
    row = []  # of each piece: its bytes, its box
    for i, byte in enumerate(word):
        piece = bytes([byte])
        box = sheet.box(left + i * _SIDE, 0.75, _shown(piece), FAINT, 0.42, 0.34)
        row.append((piece, box))
    height = {id(box): 0 for _, box in row}
    for number, pair in enumerate(merges):
        for i in range(len(row) - 1):
            (a, box_a), (b, box_b) = row[i], row[i + 1]
            if (a, b) != pair:
                continue
            up = 1 + max(height[id(box_a)], height[id(box_b)])
            colour = ORANGE if a + b in shared else BLUE
            x = (box_a.x + box_b.x) / 2
            width = 0.42 + 0.11 * len(a + b)
            box = sheet.box(x, 0.75 + up * _UP, _shown(a + b), colour, width, 0.34)
            sheet.text(x + width / 2 + 0.06, box.y, f"{number}", SMALL, FAINT, align="left")
            for below in (box_a, box_b):
                sheet.arrow(below.top, box.bottom, colour=FAINT, head=False)
            height[id(box)] = up
            row[i : i + 2] = [(a + b, box)]
            break


def token_merges():
    """How `Bread` and ` bread` are joined from bytes, with the merges of the lesson's sentence."""
    merges = BytePairs.learn([SENTENCE], 260 + 24).merges
    sheet = Canvas(8, 4.1)
    shared = {b"ad", b"ead", b"read"}
    words = [word for word in split_words(SENTENCE) if word.lower().endswith(b"bread")]
    for left, word in zip((4.4, 0.75), words):
        _grow(sheet, word, merges, left, shared)
    sheet.text(4, 0.3, "bytes; the number beside a piece is that of its merge", SMALL, FAINT)
    return sheet


def draw_sizes(sizes, scores, words_at):
    """BLEU over the entries of the vocabulary: the mean of the seeds, and each seed as a dot.

    scores: name -> BLEU of each seed, for the sizes and "words", whose list has `words_at` entries.
    """
    means = [sum(scores[size]) / len(scores[size]) for size in sizes]
    dots = [(size, score) for size in sizes for score in scores[size]]
    words = [(words_at, score) for score in scores["words"]]
    points = {"each seed": tuple(zip(*dots)), "words": tuple(zip(*words))}
    plot_curves(
        sizes, {"pieces": means}, "entries of the vocabulary", "BLEU", log="x", points=points
    )


FIGURES = {
    "token_merges.svg": Drawing(
        token_merges,
        "Two trees over the bytes of Bread, on the left, and of bread with the space before it, on "
        "the right. In both, merge 2 makes ad, merge 4 ead and merge 7 read. Then merge 16 puts a "
        "capital B before it; merge 19 puts a small b, and merge 23 the space.",
    ),
}
