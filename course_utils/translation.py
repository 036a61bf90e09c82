"""Sentences in, sentences out: a trained model with its two vocabularies."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from course_utils.data.batches import encode_source, encode_target, pad
from course_utils.data.pairs import Pair
from course_utils.data.task import references
from course_utils.data.text import detokenize, tokenize
from course_utils.data.vocab import EOS, Vocab
from course_utils.decoding import beam_search, evaluating, greedy_decode
from course_utils.metrics import bleu


@dataclass
class Translator:
    """Translate English text to French with a word-level model.

    Attributes:
        model: a trained `Transformer` or `Seq2Seq`.
        src_vocab, tgt_vocab: the vocabularies it was trained with.
    """

    model: nn.Module
    src_vocab: Vocab
    tgt_vocab: Vocab

    def translate(
        self, texts: Sequence[str], *, beam: int = 1, max_len: int = 50, batch_size: int = 128
    ) -> list[str]:
        """One translation for each text, in order; an empty text gives an empty translation."""
        if isinstance(texts, str):
            raise TypeError("translate takes a list of sentences: write translate([text])")
        results = [""] * len(texts)
        filled = [i for i, text in enumerate(texts) if tokenize(text, "en")]
        filled.sort(key=lambda i: len(texts[i]))  # like lengths together: less padding
        for start in range(0, len(filled), batch_size):
            chunk = filled[start : start + batch_size]
            for i, ids in zip(chunk, self._decode([texts[i] for i in chunk], beam, max_len)):
                results[i] = detokenize(self.tgt_vocab.decode(ids), "fr")
        return results

    def score(self, pairs: Sequence[Pair], *, beam: int = 1) -> tuple[float, list[str]]:
        """BLEU (0 to 100) on held-out pairs, and the translations it is computed from."""
        hypotheses = self.translate([pair.source for pair in pairs], beam=beam)
        return bleu(hypotheses, references(pairs)), hypotheses

    def _decode(self, texts: Sequence[str], beam: int, max_len: int) -> list[list[int]]:
        src, src_lens = pad([encode_source(text, self.src_vocab) for text in texts])
        device = next(self.model.parameters()).device
        src, src_lens = src.to(device), src_lens.to(device)
        ends = {"bos": self.tgt_vocab.bos, "eos": self.tgt_vocab.eos, "max_len": max_len}
        if beam == 1:
            return greedy_decode(self.model, src, src_lens, **ends)
        return beam_search(self.model, src, src_lens, beam=beam, **ends)

    def attention_maps(self, source: str, target: str) -> tuple[dict[str, Tensor], list, list]:
        """The weights while the model reads `source` and says `target` (its own or a reference).

        Returns:
            the families of the model's `attention_maps` without the batch axis, each
            (layers, h, Tq, Tk); the source tokens with <eos>; the tokens that the decoder says,
            with <eos>. Row t of "cross" and "decoder" is the step that says target token t.
        """
        src, src_lens = pad([encode_source(source, self.src_vocab)])
        tgt, _ = pad([encode_target(target, self.tgt_vocab)])
        device = next(self.model.parameters()).device
        with evaluating(self.model):
            maps = self.model.attention_maps(
                src.to(device), src_lens.to(device), tgt[:, :-1].to(device)
            )
        maps = {family: weights[:, 0].cpu() for family, weights in maps.items()}
        return maps, [*tokenize(source, "en"), EOS], [*tokenize(target, "fr"), EOS]


def count_parameters(model: nn.Module) -> int:
    """Trainable numbers of a model, shared ones counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
