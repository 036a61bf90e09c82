"""Sentences in, sentences out: a trained model with its two vocabularies."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.models.modes import evaluating
from course_utils.text.batches import pad
from course_utils.text.pairs import Pair
from course_utils.text.subwords import Subwords
from course_utils.text.task import references
from course_utils.text.vocab import EOS, Vocab
from course_utils.text.words import Words
from course_utils.training.decoding import beam_search, positions
from course_utils.training.metrics import bleu
from course_utils.training.runs.folder import load_model


@dataclass
class Translator:
    """Translate English text to French.

    Attributes:
        model: a trained `Transformer` or `Seq2Seq`.
        source, target: what it was trained with; a `Vocab` stands for the words of its language.
    """

    model: nn.Module
    source: Vocab | Words | Subwords
    target: Vocab | Words | Subwords

    def __post_init__(self):
        if isinstance(self.source, Vocab):
            self.source = Words(self.source, "en")
        if isinstance(self.target, Vocab):
            self.target = Words(self.target, "fr")

    def translate(
        self, texts: Sequence[str], *, beam: int = 1, max_len: int = 50, batch_size: int = 128
    ) -> list[str]:
        """One translation for each text, in order; an empty text gives an empty translation.

        A text that the model has no positions for is cut, and a warning names it.
        """
        if isinstance(texts, str):
            raise TypeError("translate takes a list of sentences: write translate([text])")
        sources, most = [self.source.encode(text) for text in texts], positions(self.model) - 1
        for i, ids in enumerate(sources):
            if len(ids) > most:
                warnings.warn(
                    f"text {i} has {len(ids)} tokens, this model takes {most}: the rest is cut off",
                    stacklevel=2,
                )
                sources[i] = ids[:most]  # and <eos>
        return [self.target.decode(ids) for ids in self.decode(sources, beam, max_len, batch_size)]

    def decode(
        self, sources: Sequence[Sequence[int]], beam: int, max_len: int, batch_size: int
    ) -> list[list[int]]:
        """From ids to ids, both without reserved ones; nothing is said about an empty source."""
        results: list[list[int]] = [[] for _ in sources]
        filled = [i for i, ids in enumerate(sources) if ids]
        filled.sort(key=lambda i: len(sources[i]))  # like lengths together: less padding
        for start in range(0, len(filled), batch_size):
            chunk = filled[start : start + batch_size]
            found = self._decode([sources[i] for i in chunk], beam, max_len)
            for i, ids in zip(chunk, found, strict=True):
                results[i] = ids
        return results

    def score(self, pairs: Sequence[Pair], *, beam: int = 1) -> tuple[float, list[str]]:
        """BLEU (0 to 100) on held-out pairs, and the translations it is computed from."""
        hypotheses = self.translate([pair.source for pair in pairs], beam=beam)
        return bleu(hypotheses, references(pairs)), hypotheses

    def _decode(self, sources: Sequence[Sequence[int]], beam: int, max_len: int) -> list[list[int]]:
        src, src_lens = pad([[*ids, self.source.eos] for ids in sources])
        device = next(self.model.parameters()).device
        src, src_lens = src.to(device), src_lens.to(device)
        ends = {"bos": self.target.bos, "eos": self.target.eos, "max_len": max_len}
        return beam_search(self.model, src, src_lens, beam=beam, **ends)

    def attention_maps(self, source: str, target: str) -> tuple[dict[str, Tensor], list, list]:
        """The weights while the model reads `source` and says `target` (its own or a reference).

        Returns:
            the families of the model's `attention_maps` without the batch axis, each
            (layers, h, Tq, Tk); the source tokens with <eos>; the tokens that the decoder says,
            with <eos>. Row t of "cross" and "decoder" is the step that says target token t.
        """
        src, src_lens = pad([[*self.source.encode(source), self.source.eos]])
        tgt = torch.tensor([[self.target.bos, *self.target.encode(target)]])
        device = next(self.model.parameters()).device
        with evaluating(self.model):
            maps = self.model.attention_maps(src.to(device), src_lens.to(device), tgt.to(device))
        maps = {family: weights[:, 0].cpu() for family, weights in maps.items()}
        return maps, [*self.source.tokens(source), EOS], [*self.target.tokens(target), EOS]


def load_translator(folder: str | Path, device: torch.device | str = "cpu") -> Translator:
    """The model of a folder, ready to translate; see `load_model` for what is raised.

    Args:
        folder: a path, or where there is none the name of a model that ships with the course.
    """
    model, vocabulary = load_model(folder, device)
    return Translator(model, vocabulary, vocabulary)
