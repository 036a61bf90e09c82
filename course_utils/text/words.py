"""Text <-> ids by words: a vocabulary and the language whose rules cut a line into words."""

from collections.abc import Iterable, Sequence
from itertools import chain

from course_utils.text.text import cut, detokenize, tokenize, words
from course_utils.text.vocab import Vocab


class _Ids(dict):
    """What stands between two spaces -> its ids; each different word is cut and looked up once."""

    most = 2**17  # words that are remembered

    def __init__(self, words: "Words"):
        super().__init__()
        self.words = words

    def __missing__(self, word: str) -> list[int]:
        if len(self) == self.most:
            self.clear()
        self[word] = ids = self.words.vocab.encode(cut(word, self.words.lang))
        return ids


class Words:
    """What `Subwords` offers, for the lower-cased words of one language.

    Args:
        vocab: the words that have an id.
        lang: "en" or "fr".
    """

    pad, bos, eos, unk = Vocab.pad, Vocab.bos, Vocab.eos, Vocab.unk

    def __init__(self, vocab: Vocab, lang: str):
        self.vocab, self.lang = vocab, lang
        self._ids = _Ids(self)

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        """Ids of a line, without reserved ones at its ends."""
        return self.encode_all([text])[0]

    def encode_all(
        self, texts: Iterable[str], before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> list[list[int]]:
        """The same for many lines, each between the ids that stand before and after it."""
        ids = self._ids.__getitem__
        return [[*before, *chain.from_iterable(map(ids, words(text))), *after] for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The line that some ids spell."""
        return detokenize(self.vocab.decode(ids), self.lang)

    def tokens(self, text: str) -> list[str]:
        """What stands on the axes of a heatmap, one for each id."""
        return tokenize(text, self.lang)
