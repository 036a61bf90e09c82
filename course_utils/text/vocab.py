"""Token <-> id."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

PAD, BOS, EOS, UNK = RESERVED = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocab:
    """Ids for tokens: four reserved ones first, then by falling frequency, ties in order of text.

    A word of a text that is spelled like a reserved token, or was not seen often enough, is
    `<unk>`.

    Args:
        sentences: token lists to count.
        min_freq: how often a token must occur to get an id of its own.
    """

    pad, bos, eos, unk = range(4)

    def __init__(self, sentences: Iterable[Sequence[str]], min_freq: int = 1):
        self._number(Counter(chain.from_iterable(sentences)), min_freq)

    @classmethod
    def of_counts(cls, counts: Mapping[str, int], min_freq: int = 1) -> "Vocab":
        """The vocabulary of sentences in which each token occurs so often."""
        vocab = cls.__new__(cls)
        vocab._number(counts, min_freq)
        return vocab

    def _number(self, counts: Mapping[str, int], min_freq: int) -> None:
        kept = [t for t, n in counts.items() if n >= min_freq and t not in RESERVED]
        self.tokens: list[str] = [*RESERVED, *sorted(kept, key=lambda t: (-counts[t], t))]
        self._words = {token: i for i, token in enumerate(self.tokens) if token not in RESERVED}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._words or token in RESERVED

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of ordinary tokens; what is unknown, or spelled like a reserved token, is `unk`."""
        return list(map(self._words.get, tokens, repeat(self.unk)))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of some ids, reserved ones included.

        Raises:
            IndexError: an id is not in 0..len(vocab) - 1.
        """
        ids = [int(i) for i in ids]
        if wrong := [i for i in ids if not 0 <= i < len(self)]:
            raise IndexError(f"ids must lie in 0..{len(self) - 1}, got {wrong[0]}")
        return [self.tokens[i] for i in ids]
