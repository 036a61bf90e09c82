"""The table of chapters, and the one way to what lies in their folders.

A chapter is a notebook, a row of CHAPTERS, and a folder `ch<name>` that may hold exercises.py,
cards.py and figures.py. Whatever shows an order of chapters takes it from here.
"""

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Chapter:
    """One row of the table.

    Attributes:
        name: of its notebook, without the ending; its number stands first.
        title, chinese: the heading, and the Chinese term beside it where there is one.
        part: the group of chapters that it belongs to, one of PARTS.
        builds: what a reader builds and sees in it.
        note: the same in three words, for the map.
    """

    name: str
    title: str
    chinese: str
    part: str
    builds: str
    note: str

    @property
    def number(self) -> int:
        return int(self.name[:2])


PARTS = ("Attention", "Self-attention", "Transformer", "In use", "Review")

CHAPTERS = (
    Chapter("00_start_here", "Start here", "", "Attention",
            "how the course works, an environment check, a first heatmap", "check and look"),
    Chapter("01_attention_pooling", "Attention pooling", "注意力汇聚", "Attention",
            "queries, keys and values; Nadaraya-Watson regression; a learned width",
            "query, key, value"),
    Chapter("02_masked_softmax", "Masked softmax", "掩蔽 softmax", "Attention",
            "padding and causal masks; the row with nothing to look at; half precision",
            "what must not be seen"),
    Chapter("03_scoring_functions", "Scoring functions", "评分函数", "Attention",
            "additive and dot-product attention; why divide by the root of d",
            "additive, dot product"),
    Chapter("04_bahdanau_translation", "Bahdanau translation", "Bahdanau 注意力", "Attention",
            "a recurrent translator without attention and with it, by sentence length",
            "GRU with attention"),
    Chapter("05_self_attention", "Self-attention", "自注意力", "Self-attention",
            "attention without parameters; CNN, RNN and attention: paths, steps and cost, counted "
            "and measured", "every word asks"),
    Chapter("06_multi_head_attention", "Multi-head attention", "多头注意力", "Self-attention",
            "heads by loop and by reshape; six common mistakes, made on purpose",
            "several at once"),
    Chapter("07_positional_encoding", "Positional encoding", "位置编码", "Self-attention",
            "sines, rotations, learned positions, and what happens beyond the trained length",
            "order, put back"),
    Chapter("08_transformer_blocks", "Transformer blocks", "编码器块与解码器块", "Transformer",
            "residual connections, LayerNorm, feed-forward; gradients against depth",
            "residual and norm"),
    Chapter("09_transformer_translation", "The Transformer translates", "Transformer",
            "Transformer",
            "the whole model: training, beam search, key-value cache, every head's map",
            "train, decode, look"),
    Chapter("10_text_classification", "Text classification", "文本分类", "Transformer",
            "reviews in which word order decides, with positions and without",
            "one stack, one label"),
    Chapter("11_three_modes", "Three modes", "三种模式", "Transformer",
            "one set of blocks as BERT, GPT and T5; sampling", "BERT, GPT, T5"),
    Chapter("12_training_in_practice", "Training in practice", "训练实践", "In use",
            "schedules, smoothing, half precision, two processes; every usual failure, made and "
            "found", "and how it fails"),
    Chapter("13_long_sequences", "Long sequences", "长序列", "In use",
            "windows, low rank, kernels, hashing, memory: error and cost of each",
            "below the square of n"),
    Chapter("14_fine_tuning", "Fine-tuning", "微调", "In use",
            "adapters, LoRA, prefixes, prompts; what RLHF optimises", "LoRA and friends"),
    Chapter("15_mistakes_clinic", "Mistakes clinic", "纠错门诊", "Review",
            "over a hundred statements of the notes that do not hold: guess, then run",
            "the notes, mended"),
    Chapter("16_recall", "Recall", "复习", "Review",
            "checked recall cards, spaced by fsrs; the course on one page",
            "to keep it in mind"),
)  # fmt: skip


def contents(kind: str) -> Iterator[tuple[Chapter, ModuleType]]:
    """Each chapter that has such a file in its folder, with the file as a module, in order.

    Args:
        kind: "exercises", "cards" or "figures".
    """
    for chapter in CHAPTERS:
        name = f"{__name__}.ch{chapter.name}.{kind}"
        if importlib.util.find_spec(name):
            yield chapter, importlib.import_module(name)
