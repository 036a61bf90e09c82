"""Text <-> ids by subwords, cased and without loss, for models of real text.

The words of a language are too many for a vocabulary; byte-pair encoding (字节对编码) makes it of
the most frequent pieces instead, down to single bytes, so that no text is unknown. The library
`tokenizers` learns and applies the merges.
"""

import json
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from course_utils.text import byte_pairs
from course_utils.text.text import normalise, printable
from course_utils.text.vocab import RESERVED

BYTES = frozenset(pre_tokenizers.ByteLevel.alphabet())  # the characters that stand for bytes
SMALLEST = len(RESERVED) + len(BYTES)
LONGEST = 64  # bytes of a piece that is learnt, so that the size of a vocabulary has a bound
# GPT-2's rule, but a mark on a letter stays with it; in `byte_pairs` it stands for Python
_WORD = Regex(
    r"'(?:[stmd]|re|ve|ll)| ?\p{L}[\p{L}\p{M}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
_STANDS_FOR = dict(zip(sorted(BYTES), byte_pairs.BYTES, strict=True))
_CHANGE_TEXT = ("normalizer", "post_processor", "truncation", "padding")


class Subwords:
    """A vocabulary of pieces, with the ids of `Vocab` for the reserved tokens.

    Source: Sennrich et al. 2016, over bytes as in GPT-2.

    Args:
        tokenizer: a byte-level BPE tokenizer whose first ids are the reserved tokens.

    Raises:
        ValueError: they are not.
    """

    pad, bos, eos, unk = range(4)

    def __init__(self, tokenizer: Tokenizer):
        found = tuple(tokenizer.id_to_token(i) for i in range(len(RESERVED)))
        if found != RESERVED:
            raise ValueError(
                f"the vocabulary must begin with {', '.join(RESERVED)}, "
                f"got {', '.join(map(str, found))}"
            )
        tokenizer.encode_special_tokens = True  # "<pad>" in a text is text
        self._tokenizer = tokenizer

    @classmethod
    def learn(cls, texts: Iterable[str], size: int) -> "Subwords":
        """Learn a vocabulary of at most `size` entries from some lines.

        Raises:
            ValueError: `size` does not hold the reserved tokens and every byte.
        """
        if size < SMALLEST:
            raise ValueError(f"size must be at least {SMALLEST}, got {size}")
        tokenizer = _over_bytes(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(RESERVED),
            initial_alphabet=sorted(BYTES),
            max_token_length=LONGEST,
            show_progress=False,
        )
        tokenizer.train_from_iterator(map(normalise, texts), trainer)
        return cls(tokenizer)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Ids of a normalised line, without reserved ones; an empty line has none."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many lines, by all processors."""
        lines = [normalise(text) for text in texts]
        encoded = self._tokenizer.encode_batch(lines, add_special_tokens=False)
        return [e.ids if line else [] for e, line in zip(encoded, lines, strict=True)]

    def decode(self, ids: Iterable[int]) -> str:
        """The line that some ids spell; reserved ids are left out, broken characters replaced."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True).strip()

    def spell(self, ids: Iterable[int]) -> list[bytes]:
        """The bytes of each id, which may be a part of a character; of a reserved one its name."""
        tokens = [self._tokenizer.id_to_token(i) for i in ids]
        return [
            t.encode() if t in RESERVED else b"".join(_STANDS_FOR[c] for c in t) for t in tokens
        ]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as it reads on its own, for the axes of a heatmap; `·` begins a word.

        A control character is shown as its escape.
        """
        return [
            self._tokenizer.id_to_token(i)
            if i < len(RESERVED)
            else printable(self._tokenizer.decode([i]).replace(" ", "·"))
            for i in ids
        ]

    def tokens(self, text: str) -> list[str]:
        """The pieces of a line."""
        return self.pieces(self.encode(text))

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Pairs of pieces in the order in which they were learned, as `BytePairs` takes them."""
        content = json.loads(self.to_json())["model"]["merges"]
        return [tuple(b"".join(_STANDS_FOR[c] for c in p) for p in pair) for pair in content]

    def to_json(self) -> str:
        """The vocabulary and its merges as text."""
        return self._tokenizer.to_str()

    @classmethod
    def from_json(cls, text: str) -> "Subwords":
        """The reverse of `to_json`.

        Only pieces and merges are taken from the text, so that nothing else in it can act.

        Raises:
            ValueError: the text is no such vocabulary.
        """
        try:
            pieces, merges = _parts(json.loads(text))
            tokenizer = _over_bytes(models.BPE(pieces, merges))
        except Exception as error:  # the library has no exceptions of its own
            reason = str(error) or type(error).__name__
            if isinstance(error, KeyError):
                reason = f"it has no {reason}"
            raise ValueError(f"this is no subword vocabulary: {reason[:200]}") from None
        tokenizer.add_special_tokens(list(RESERVED))
        return cls(tokenizer)


def _over_bytes(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="first", split=False),
            pre_tokenizers.Split(_WORD, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _parts(content: dict) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Pieces with their ids, and merges, of what `to_json` wrote.

    Raises:
        ValueError, TypeError, KeyError: it did not write this.
    """
    model = content["model"]
    if model["type"] != "BPE":
        raise ValueError("its model is not BPE")
    if extra := [name for name in _CHANGE_TEXT if content.get(name) is not None]:
        raise ValueError(f"it has a {extra[0]}, which would change texts unseen")
    ids = model["vocab"]
    if any(type(i) is not int for i in ids.values()) or set(ids.values()) != set(range(len(ids))):
        raise ValueError(
            f"the ids of its {len(ids):,} pieces must be 0 to {len(ids) - 1:,}, each once"
        )
    if missing := (BYTES | set(RESERVED)) - ids.keys():
        raise ValueError(f"it lacks {len(missing)} of the reserved tokens and bytes")
    if odd := [p for p in ids if p not in RESERVED and not (p and BYTES.issuperset(p))]:
        raise ValueError(f"its piece {odd[0][:40]!r} is not made of bytes")
    merges = [(left, right) for left, right in model["merges"]]
    for left, right in merges:
        if not (left in ids and right in ids and left + right in ids):
            raise ValueError(f"a merge of {left!r:.40} and {right!r:.40}, not all of them pieces")
    return ids, merges
