"""What a training was asked to do: its options, and how a resumed run keeps them."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from course_utils.models.transformer import TransformerConfig
from course_utils.text.registry import PAIRS, names
from course_utils.text.subwords import SMALLEST
from course_utils.training.runs.folder import LARGEST, empty_model, found, read_config
from course_utils.training.runs.refusals import Refused, number


@dataclass(frozen=True)
class Settings:
    """The options of `train`; None stands for "as it suits the corpus or the other options"."""

    corpus: str
    size: int | None = None
    epochs: int | None = None
    minutes: float | None = None
    held_out: int | None = None
    vocab: int = 4000
    d_model: int = 128
    heads: int = 4
    layers: int = 2
    d_ff: int | None = None
    dropout: float = 0.1
    max_len: int = 256
    tokens: int | None = None
    lr: float | None = None
    warmup: float = 0.1
    smoothing: float = 0.1
    validations: int = 10
    seed: int = 0
    patience: int | None = None
    start_from: str | None = None

    @property
    def peak_lr(self) -> float:
        """The larger the model, the smaller the steps it bears."""
        return 0.024 / self.d_model**0.5 if self.lr is None else self.lr

    def model_config(self, vocab_size: int, max_len: int) -> TransformerConfig:
        """The sizes of the model for a vocabulary and the longest sentence."""
        return TransformerConfig(
            src_vocab_size=vocab_size,
            tgt_vocab_size=vocab_size,
            d_model=self.d_model,
            num_heads=self.heads,
            d_ff=4 * self.d_model if self.d_ff is None else self.d_ff,
            num_encoder_layers=self.layers,
            num_decoder_layers=self.layers,
            dropout=self.dropout,
            inner_dropout=0.0,  # random numbers are dear, and the fused kernel wants none
            max_len=max_len,
        )


MOST = 10**9  # of anything that is counted; more is a slip
BUDGET = {
    "epochs": (number(int, 1, MOST), "pass N times over the corpus (default 10)"),
    "minutes": (number(float, 0, open_ends=True), "or train for N minutes"),
}
OPTIONS = {
    "size": (number(int, 1, MOST), "use the first N pairs of the corpus"),
    "held_out": (number(int, 1, MOST), "source sentences kept for validation, and as many for the "
                 "test (default: a twentieth, at most 250)"),
    "vocab": (number(int, SMALLEST, LARGEST["src_vocab_size"]), "pieces of the vocabulary that "
              "both languages share"),
    "d_model": (number(int, 2, LARGEST["d_model"]), "size of a token's vector"),
    "heads": (number(int, 1, LARGEST["num_heads"]), "attention heads"),
    "layers": (number(int, 1, LARGEST["num_encoder_layers"]), "layers of the encoder, and of the "
               "decoder"),
    "d_ff": (number(int, 1, LARGEST["d_ff"]), "hidden size of the feed-forward network (default: "
             "4 d_model)"),
    "dropout": (number(float, 0, 0.95), "share of activations dropped in training"),
    "max_len": (number(int, 8, LARGEST["max_len"]), "leave out pairs with more pieces than this"),
    "tokens": (number(int, 1, MOST), "padded tokens in a batch, both sides (default: a 250th of "
               "the corpus, from 256 to 1280; a GPU bears ten times as many)"),
    "lr": (number(float, 0, 10, open_ends=True), "peak learning rate (default: by d_model)"),
    "warmup": (number(float, 0, 1, open_ends=True), "share of the budget until the peak"),
    "smoothing": (number(float, 0, 0.95), "label smoothing"),
    "validations": (number(int, 1, 100_000), "how often to validate, evenly over the budget"),
    "seed": (number(int, 0, 2**32), "of weights, batches and dropout"),
}  # fmt: skip
ENDS = {
    "patience": (number(int, 1, 100_000), "stop when N validations in a row brought nothing better"
                 " (default: use up the budget)"),
}  # fmt: skip
SIZES = {"vocab": "src_vocab_size", "d_model": "d_model", "heads": "num_heads",
         "layers": "num_encoder_layers", "d_ff": "d_ff"}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what and how to train; an option that is not given leaves no trace when parsed."""
    defaults = {field.name: field.default for field in fields(Settings)}
    parser.add_argument(
        "--corpus", metavar="NAME_OR_TSV", default=argparse.SUPPRESS,
        help=f"{', '.join(names(PAIRS))}, or a file of source, tab, target",
    )  # fmt: skip
    budget = parser.add_mutually_exclusive_group()
    for name, (kind, text) in BUDGET.items():
        budget.add_argument(f"--{name}", type=kind, metavar="N", help=text,
                            default=argparse.SUPPRESS)  # fmt: skip
    for name, (kind, text) in OPTIONS.items():
        if defaults[name] is not None:
            text += f" (default {defaults[name]})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=text,
                         default=argparse.SUPPRESS)  # fmt: skip


def add_ends(parser: argparse.ArgumentParser) -> None:
    """Add from where to train, and when to stop."""
    parser.add_argument(
        "--start-from", metavar="DIR", default=argparse.SUPPRESS,
        help="begin with the weights and the vocabulary of this model: a folder that `train` wrote,"
        " or fra-eng, which ships with the course",
    )  # fmt: skip
    for name, (kind, text) in ENDS.items():
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=text,
                            default=argparse.SUPPRESS)  # fmt: skip


def _sizes_of(folder: str, given: Mapping[str, object]) -> dict[str, int]:
    """The sizes of a model to start from, as options."""
    if asked := [name for name in SIZES if name in given]:
        raise Refused(
            f"the sizes are those of the model in {folder}: leave out "
            f"--{asked[0].replace('_', '-')}, or leave out --start-from"
        )
    config = read_config(found(folder))
    return {option: getattr(config, name) for option, name in SIZES.items()}


def new_settings(given: Mapping[str, object]) -> Settings:
    """The settings of a new training.

    Raises:
        Refused: no corpus is named, the sizes do not go together, or there is no model to start
            from.
    """
    if "corpus" not in given:
        known = ", ".join(names(PAIRS))
        raise Refused(f"name a corpus: --corpus {known} or the path of a TSV")
    if not {"epochs", "minutes"} & set(given):
        given = {**given, "epochs": 10}
    if "start_from" in given:
        given = {**given, **_sizes_of(given["start_from"], given)}
    settings = Settings(**given)
    _check_sizes(settings)
    return settings


def _check_sizes(settings: Settings) -> None:
    """Build the model without memory, before anything is loaded or written for it."""
    try:
        empty_model(settings.model_config(settings.vocab, settings.max_len))
    except ValueError as error:
        raise Refused(f"these sizes do not go together: {error}") from None


def resumed_settings(stored: Mapping[str, object], given: Mapping[str, object]) -> Settings:
    """The settings of a training that goes on; options that are given again must be the same.

    Raises:
        Refused: one differs, or the stored ones are none that `train` takes.
    """
    try:
        settings = Settings(**stored)
    except TypeError as error:
        raise Refused(f"the checkpoint is of another version: {str(error)[:200]}") from None
    _check(settings)
    _check_sizes(settings)
    kept = asdict(settings)
    changed = [
        f"--{name.replace('_', '-')} was {kept[name] or 'not given'}, now {value}"
        for name, value in given.items()
        if kept[name] != value
    ]
    if changed:
        raise Refused(
            f"--resume goes on with the same settings: {'; '.join(changed)}. Leave these options "
            "out, or start anew in another --out, with --start-from to begin with these weights"
        )
    return settings


def _check(settings: Settings) -> None:
    """Hold stored settings, which may be a stranger's, to what the command line takes."""
    names = isinstance(settings.corpus, str) and isinstance(settings.start_from, str | None)
    if not names or (settings.epochs is None) == (settings.minutes is None):
        raise Refused("the checkpoint names no corpus, or not one of epochs and minutes")
    for name, (kind, _) in {**BUDGET, **OPTIONS, **ENDS}.items():
        value = getattr(settings, name)
        if value is None and getattr(Settings, name) is None:
            continue
        try:
            sound = kind(str(value)) == value and not isinstance(value, bool)
        except (argparse.ArgumentTypeError, OverflowError):
            sound = False
        if not sound:
            raise Refused(f"the checkpoint is damaged: it says {name} = {str(value)[:40]!r}")
