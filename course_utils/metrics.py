"""How good is a translation, and how well do attention weights find the words they translate."""

from collections.abc import Iterable, Sequence

from torch import Tensor

Links = Iterable[tuple[int, int]]


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU from 0 to 100 by sacreBLEU, lower-cased, its own 13a tokens.

    Raises:
        ValueError: the lists differ in length or are empty.
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"BLEU compares line by line: got {len(hypotheses)} hypotheses and "
            f"{len(references)} references"
        )
    from sacrebleu import corpus_bleu

    return corpus_bleu(list(hypotheses), [list(references)], lowercase=True).score


def links_from_weights(weights: Tensor) -> set[tuple[int, int]]:
    """The (source, target) links that weights (Tt, Ts) suggest: each target's heaviest source."""
    return {(int(source), target) for target, source in enumerate(weights.argmax(dim=-1))}


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[Links]) -> float:
    """AER = 1 - 2 |A and G| / (|A| + |G|) over a corpus, 0 is perfect (Och and Ney 2003).

    All gold links count as sure. Links of target tokens that have no gold link (such as <eos>)
    are left out of A.

    Args:
        predicted, gold: one set of (source, target) links a sentence.

    Raises:
        ValueError: different numbers of sentences, or no links at all.
    """
    if len(predicted) != len(gold):
        raise ValueError(f"got {len(predicted)} predicted and {len(gold)} gold alignments")
    hits = sizes = 0
    for links, truth in zip(predicted, gold, strict=True):
        truth = set(truth)
        aligned = {target for _, target in truth}
        links = {link for link in links if link[1] in aligned}
        hits += len(links & truth)
        sizes += len(links) + len(truth)
    if not sizes:
        raise ValueError("there are no links to compare")
    return 1 - 2 * hits / sizes
