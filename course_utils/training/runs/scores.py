"""BLEU and chrF as others compute them: sacreBLEU, cased, on plain text, with signatures."""

from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus BLEU from 0 to 100 and its signature."""
    return _score(BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus chrF2 from 0 to 100 and its signature."""
    return _score(CHRF(), hypotheses, references)


def _score(metric, hypotheses, references) -> tuple[float, str]:
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return score, str(metric.get_signature())
