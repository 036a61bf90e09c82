"""How good is a translation, and how well do attention weights find the words they translate."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

Links = Iterable[tuple[int, int]]


HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Thai, Lao, Tibetan, Burmese, Khmer, and the kana of Japanese
UNSPACED = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"


class Score(float):
    """A number from 0 to 100 with its `name` and the `signature` by which sacreBLEU computed it."""

    name: str
    signature: str

    def __new__(cls, value: float, name: str, signature: str) -> "Score":
        score = super().__new__(cls, value)
        score.name, score.signature = name, signature
        return score


def tokens_for(references: Sequence[str]) -> str:
    """The name of sacreBLEU's tokens that suit a script: 13a, zh, or char.

    13a parts words at spaces. A sentence of a script that writes none is one word to it, so that
    BLEU is 0 however good the translation.
    """
    text = "".join(references)
    letters = sum(map(str.isalpha, text))
    han, others = (len(re.findall(f"[{script}]", text)) for script in (HAN, UNSPACED))
    if 2 * (han + others) <= letters:
        return "13a"
    return "zh" if 10 * others < han else "char"


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = True) -> Score:
    """Corpus BLEU from 0 to 100 by sacreBLEU, on those of its own tokens that suit the script.

    Args:
        lowercase: whether A and a are one letter, as in the lessons; `train` and `evaluate` say
            False, so that their scores compare with those of others.

    Raises:
        TypeError: one of them is a single string.
        ValueError: the lists differ in length or are empty.
    """
    from sacrebleu.metrics import BLEU

    _check("BLEU", hypotheses, references)
    # force: no advice of its own, in the name of its own options, about text that is in tokens
    metric = BLEU(lowercase, force=True, tokenize=tokens_for(references))
    return _score("BLEU", metric, hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF2 from 0 to 100 by sacreBLEU, cased; raises what `bleu` raises."""
    from sacrebleu.metrics import CHRF

    _check("chrF2", hypotheses, references)
    return _score("chrF2", CHRF(), hypotheses, references)


def quality(hypotheses: Sequence[str], references: Sequence[str], measure: str) -> Score:
    """Cased BLEU, or chrF2, as `measure` says; raises what they raise."""
    if measure == "BLEU":
        return bleu(hypotheses, references, lowercase=False)
    return chrf(hypotheses, references)


def measure_for(references: Sequence[str]) -> str:
    """BLEU; chrF2 where no reference has the four tokens in a row without which BLEU is 0."""
    from sacrebleu.metrics import BLEU

    tokens = BLEU(tokenize=tokens_for(references)).tokenizer
    long = any(len(tokens(reference.rstrip()).split()) > 3 for reference in references)
    return "BLEU" if long else "chrF2"


def _check(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> None:
    lists = (hypotheses, references)
    if any(isinstance(x, str) or not all(isinstance(line, str) for line in x) for x in lists):
        raise TypeError(f"{name} takes two lists of sentences: write [hypothesis] and [reference]")
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"{name} compares line by line: got {len(hypotheses)} hypotheses and "
            f"{len(references)} references"
        )


def _score(name: str, metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    found = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(found, name, str(metric.get_signature()))


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
