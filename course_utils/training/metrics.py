"""How good is a translation, and how well do attention weights find the words they translate."""

from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

Links = Iterable[tuple[int, int]]


class Score(float):
    """A number from 0 to 100 with its `signature`, which says how sacreBLEU computed it."""

    signature: str

    def __new__(cls, value: float, signature: str) -> "Score":
        score = super().__new__(cls, value)
        score.signature = signature
        return score


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = True) -> Score:
    """Corpus BLEU from 0 to 100 by sacreBLEU, on its own 13a tokens.

    Args:
        lowercase: whether A and a are one letter, as in the lessons; `train` and `evaluate` say
            False, so that their scores compare with those of others.

    Raises:
        TypeError: one of them is a single string.
        ValueError: the lists differ in length or are empty.
    """
    from sacrebleu.metrics import BLEU

    return _score("BLEU", BLEU(lowercase=lowercase), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF2 from 0 to 100 by sacreBLEU, cased; raises what `bleu` raises."""
    from sacrebleu.metrics import CHRF

    return _score("chrF2", CHRF(), hypotheses, references)


def _score(name: str, metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError(f"{name} takes two lists of sentences: write [hypothesis] and [reference]")
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"{name} compares line by line: got {len(hypotheses)} hypotheses and "
            f"{len(references)} references"
        )
    found = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(found, str(metric.get_signature()))


def links_from_weights(weights: Tensor) -> set[tuple[int, int]]:
    """The (source, target) links that weights (Tt, Ts) suggest: each target's heaviest source.

    The last source, <eos>, is no word and gets no link.
    """
    words = weights[:, :-1]
    if not words.shape[1]:  # nothing but <eos>
        return set()
    return {(int(source), target) for target, source in enumerate(words.argmax(dim=-1))}


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[Links]) -> float:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|) over a corpus, 0 is perfect.

    Source: Och and Ney 2003. P holds the gold links; S, the sure ones, are those of a word with a
    single counterpart that has a single counterpart itself. Where words translate as a group
    ("didn't" as "ne ... pas"), each link of the group is possible. Predicted links of targets that
    have no gold link (such as <eos>) are left out of A.

    Args:
        predicted, gold: one set of (source, target) links a sentence.

    Raises:
        ValueError: different numbers of sentences, or no links at all.
    """
    if len(predicted) != len(gold):
        raise ValueError(f"got {len(predicted)} predicted and {len(gold)} gold alignments")
    hits = sizes = known = 0
    for links, possible in zip(predicted, gold, strict=True):
        possible = set(possible)
        known += len(possible)
        sources = Counter(source for source, _ in possible)
        targets = Counter(target for _, target in possible)
        sure = {(s, t) for s, t in possible if sources[s] == targets[t] == 1}
        links = {link for link in links if link[1] in targets}
        hits += len(links & sure) + len(links & possible)
        sizes += len(links) + len(sure)
    if not known:
        raise ValueError("there are no gold links to compare with")
    return 1 - hits / sizes if sizes else 1.0  # nothing predicted: nothing right
