"""Text <-> ids by words: a vocabulary and the language whose rules cut a line into words."""

from collections.abc import Iterable

from course_utils.text.text import detokenize, tokenize
from course_utils.text.vocab import Vocab


class Words:
    """What `Subwords` offers, for the lower-cased words of one language.

    Args:
        vocab: the words that have an id.
        lang: "en" or "fr".
    """

    pad, bos, eos, unk = Vocab.pad, Vocab.bos, Vocab.eos, Vocab.unk

    def __init__(self, vocab: Vocab, lang: str):
        self.vocab, self.lang = vocab, lang

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        """Ids of a line, without reserved ones at its ends."""
        return self.vocab.encode(self.tokens(text))

    def decode(self, ids: Iterable[int]) -> str:
        """The line that some ids spell."""
        return detokenize(self.vocab.decode(ids), self.lang)

    def tokens(self, text: str) -> list[str]:
        """What stands on the axes of a heatmap, one for each id."""
        return tokenize(text, self.lang)
