"""The table of chapters, and the one way to what lies in their folders.

A chapter is a notebook, a row of CHAPTERS, and a folder `ch<name>` that may hold exercises.py,
cards.py, figures.py, and helpers.py for what its cells only call. The rows stand in the order of
reading, which need not be that of the numbers. The map, the README, the site and the heads of the
notebooks are made from them.
"""

import importlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Chapter:
    """One row of the table.

    Attributes:
        name: of its notebook, without the ending; its number stands first.
        title, chinese: the heading, and the Chinese term beside it where there is one.
        part: the group of chapters that it belongs to; chapters of a part stand together.
        question: the one that the chapter asks and answers.
        builds: what a reader builds and sees in it.
        note: the same in three words, for the map.
    """

    name: str
    title: str
    chinese: str
    part: str
    question: str
    builds: str
    note: str

    @property
    def number(self) -> int:
        return int(self.name[:2])

    @property
    def file(self) -> str:
        """Of its notebook, within notebooks/."""
        return f"{self.name}.ipynb"


CHAPTERS = (
    Chapter("00_start_here", "Start here", "", "Attention",
            "What does it look like when words look at each other?",
            "a trained translator at work, how the course works, a first exercise",
            "look and try"),
    Chapter("01_attention_pooling", "Attention pooling", "注意力汇聚", "Attention",
            "How does a weighted average become attention?",
            "queries, keys and values; Nadaraya-Watson regression; a learned width",
            "query, key, value"),
    Chapter("02_masked_softmax", "Masked softmax", "掩蔽 softmax", "Attention",
            "How is a key hidden so that not a trace of it gets through?",
            "padding and causal masks; the row with nothing to look at; half precision",
            "what must not be seen"),
    Chapter("03_scoring_functions", "Scoring functions", "评分函数", "Attention",
            "How well does a key fit a query, and who says so?",
            "dot product, bilinear and additive scores; why divide by the root of d",
            "additive, dot product"),
    Chapter("04_bahdanau_translation", "Bahdanau translation", "Bahdanau 注意力", "Attention",
            "What does a translator gain that may look back at the source?",
            "a recurrent translator without attention and with it, by sentence length",
            "GRU with attention"),
    Chapter("05_self_attention", "Self-attention", "自注意力", "Self-attention",
            "What happens when a sentence asks itself?",
            "attention without parameters and with them; what training finds; CNN, RNN and "
            "attention compared; a small machine that answers questions",
            "every word asks"),
    Chapter("06_multi_head_attention", "Multi-head attention", "多头注意力", "Self-attention",
            "Why look several times at once, and how without more work?",
            "heads by loop and by reshape; common mistakes that raise no error, made on purpose",
            "several at once"),
    Chapter("07_positional_encoding", "Positional encoding", "位置编码", "Self-attention",
            "How does a model know which word comes first?",
            "sines, rotations, learned positions, and what happens beyond the trained "
            "length",
            "order, put back"),
    Chapter("08_transformer_blocks", "Transformer blocks", "Transformer 块", "Transformer",
            "What does attention need around it, so that it can be stacked?",
            "residual connections, LayerNorm, feed-forward; gradients against depth",
            "residual and norm"),
    Chapter("09_transformer_translation", "The Transformer translates", "Transformer 机器翻译",
            "Transformer",
            "Can a model translate with attention and nothing recurrent?",
            "the whole model: training, beam search, key-value cache, every head's map",
            "train, decode, look"),
    Chapter("10_text_classification", "Text classification", "文本分类", "In use",
            "When does the order of words decide, and what are positions worth?",
            "reviews in which word order decides, with positions and without",
            "one stack, one label"),
    Chapter("11_three_modes", "Three modes", "三种模式", "In use",
            "What makes BERT, GPT and T5 of the same blocks?",
            "one set of blocks as BERT, GPT and T5; sampling",
            "BERT, GPT, T5"),
    Chapter("12_training_in_practice", "Training in practice", "训练实践", "In use",
            "Why does a right model learn badly, and how do you find out?",
            "a small language model that recites; two tests before any training; a sweep, Adam by "
            "hand, each usual switch alone",
            "it recites"),
    Chapter("23_when_training_fails", "When training fails", "训练故障排查", "In use",
            "What breaks, cheats or stops a training, how do you find which it is, and what does "
            "the cure cost?",
            "one training broken in one place at a time: NaN, a leaking mask, a crash, too little "
            "memory, too little speed",
            "break it, find it"),
    Chapter("13_long_sequences", "Long sequences", "长序列", "In use",
            "What can be saved when a text gets long, and what is lost?",
            "windows, low rank, kernels, hashing, memory: error and cost of each",
            "below the square of n"),
    Chapter("14_fine_tuning", "Fine-tuning", "微调", "In use",
            "How few numbers must change in an old model to teach it something new?",
            "LoRA by hand, trained and merged; adapters, prefixes, prompts: accuracy over five "
            "seeds, memory, work, forgetting",
            "LoRA and friends"),
    Chapter("22_preferences", "Preferences", "偏好", "In use",
            "What can pull a model where there are wishes instead of labels, and where does it "
            "pull wrongly?",
            "a reward from judgements; the best policy on a leash; PPO step by step and DPO; "
            "over-optimisation with its cause",
            "judged, not labelled"),
    Chapter("17_todays_blocks", "Today's blocks", "今天的 Transformer 块", "Since 2017",
            "What has changed in the block since 2017, and what does each change buy?",
            "RMSNorm, SwiGLU, rotary positions, grouped queries and experts, each raced alone "
            "against the old block",
            "the block, renewed"),
    Chapter("18_exact_and_fast", "Exact and fast", "精确而快", "Since 2017",
            "How is attention computed exactly without its table, and text written faster with "
            "every word as likely as before?",
            "softmax in one pass, attention in tiles, a cache in pages, speculative decoding, "
            "numbers of fewer bits",
            "the same, cheaper"),
    Chapter("19_what_heads_do", "What heads do", "注意力头在做什么", "Since 2017",
            "What does a head do, and how would you prove it?",
            "a model that learns to copy, its induction head found and switched off; activation "
            "patching, logit lens, rollout; whether attention explains, tested on gold alignments",
            "look, then test"),
    Chapter("20_tokens", "Tokens", "词元", "Since 2017",
            "What does a model really read, and what does that hide from it?",
            "byte-pair encoding from bytes, equal to the library's; how large a vocabulary; "
            "numbers, spelling and other scripts on a trained translator",
            "what a model reads"),
    Chapter("21_pictures", "Pictures", "图像", "Since 2017",
            "Can the same encoder read a picture, and what must it learn that a convolution is "
            "given?",
            "patches as words, a vision Transformer, where it looks; a small convolutional net "
            "beside it, with little data and much",
            "patches as words"),
    Chapter("15_mistakes_clinic", "Mistakes clinic", "纠错门诊", "Review",
            "Which of these sentences hold, and what would show it?",
            "42 sentences of five study notes, about half of them right: guess, then run",
            "guess, then run"),
    Chapter("16_recall", "Recall", "复习", "Review",
            "What of all this do you still know tomorrow?",
            "checked recall cards, spaced by fsrs; the course on one page",
            "to keep it in mind"),
)  # fmt: skip

COSTS = Path(__file__).with_name("costs.json")  # written by `course --costs`


def measured_costs(file: Path = COSTS) -> dict[str, dict]:
    """What running each notebook took when last measured: {notebook: {"seconds", "peak_bytes"}}.

    Raises:
        ValueError: the file cannot be read, or holds something else.
    """
    try:
        costs = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(costs, dict):
            raise ValueError(f"it holds a {type(costs).__name__}")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(
            f"no costs in {file} ({why}): `python -m course_utils course --costs {file}` "
            "measures and writes them"
        ) from None
    return costs


def by_part(chapters: Sequence[Chapter] = CHAPTERS) -> Iterator[tuple[str, list[Chapter]]]:
    """The parts of the course in order, each with its chapters."""
    for part, members in groupby(chapters, key=lambda chapter: chapter.part):
        yield part, list(members)


def contents(kind: str) -> Iterator[tuple[Chapter, ModuleType]]:
    """Each chapter that has such a file in its folder, with the file as a module, in order.

    Args:
        kind: "exercises", "cards" or "figures".
    """
    for chapter in CHAPTERS:
        name = f"{__name__}.ch{chapter.name}.{kind}"
        if importlib.util.find_spec(name):
            yield chapter, importlib.import_module(name)
