"""The model folder: what `train` writes and the other commands read.

    model.safetensors   the best weights so far; its header holds their validation score, loss and
                        step, and a digest of their vocabulary
    config.json         the sizes of the model, and the number of this format
    vocabulary.json     the subword vocabulary of both languages

A folder from a stranger is safe to load: no file can run code, and none makes the loader reserve
more memory than the weights on disk justify.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.subwords import Subwords
from course_utils.training.runs.files import (
    all_finite,
    read_header,
    read_tensors,
    read_text,
    write_atomic,
    write_tensors,
)
from course_utils.training.runs.refusals import Refused
from course_utils.training.trained import trained_models

FORMAT = 1
WEIGHTS, CONFIG, VOCABULARY = "model.safetensors", "config.json", "vocabulary.json"
CONFIG_BYTES = 100_000  # no such file is larger
LARGEST = {  # no sizes beyond these are tried out
    "src_vocab_size": 1_000_000,
    "tgt_vocab_size": 1_000_000,
    "d_model": 16_384,
    "num_heads": 1_024,
    "d_ff": 131_072,
    "max_len": 16_384,
    "num_encoder_layers": 256,
    "num_decoder_layers": 256,
}


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """The trained tensors by name; one that is shared stands under its first name only."""
    return dict(model.named_parameters())


def write_config(folder: Path, config: TransformerConfig) -> None:
    """Write config.json."""
    fields = {"format": FORMAT, **dataclasses.asdict(config)}
    write_atomic(folder / CONFIG, (json.dumps(fields, indent=2) + "\n").encode())


def read_config(folder: Path) -> TransformerConfig:
    """Read config.json.

    Raises:
        Refused: it is missing, no JSON, of another format, or one of its fields is unknown,
            missing, of a wrong type or absurd.
    """
    path = folder / CONFIG
    fields = _read_json(path)
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        found = fields.get("format") if isinstance(fields, dict) else "no object"
        raise Refused(f"{path} is of format {_short(found)}, this version reads format {FORMAT}")
    del fields["format"]
    known = {field.name: field for field in dataclasses.fields(TransformerConfig)}
    if odd := sorted(fields.keys() ^ known.keys()):
        what = "the unknown field" if odd[0] in fields else "no field"
        raise Refused(
            f"{path} has {what} {_short(odd[0])}; its fields are format, {', '.join(known)}"
        )
    for name, value in fields.items():
        _check_field(path, name, value, known[name].type)
    try:
        config = TransformerConfig(**fields)
        empty_model(config)
    except ValueError as error:
        raise Refused(f"{path} describes no model: {str(error)[:200]}") from None
    return config


def _check_field(path: Path, name: str, value: object, annotation: object) -> None:
    kinds = {
        int: ((int,), "a whole number"),
        float: ((int, float), "a number"),
        bool: ((bool,), "true or false"),
        str: ((str,), "text"),
        float | None: ((int, float, type(None)), "a number or null"),
    }
    types, wanted = kinds[annotation]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise Refused(f"{path}: {name} must be {wanted}, got {_short(value)}")
    if annotation is int and not 1 <= value <= LARGEST[name]:
        raise Refused(f"{path}: {name} must lie in 1..{LARGEST[name]:,}, got {_short(value)}")
    if name.endswith("dropout") and value is not None and not 0 <= value < 1:
        raise Refused(f"{path}: {name} must be at least 0 and below 1, got {value}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."


def _read_json(path: Path) -> object:
    text = _read_text(path, CONFIG_BYTES)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} cannot be read as JSON ({error}): copy it again, or train again"
                      ) from None  # fmt: skip


def _read_text(path: Path, most: int) -> str:
    try:
        return read_text(path, most)
    except FileNotFoundError:
        raise Refused(_missing(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read ({error}): copy it again, or train again") from None


def _missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}: name the one that `train --out` has written"
    return f"there is no {path.name} in {path.parent}: name a folder that `train --out` has written"


def empty_model(config: TransformerConfig) -> Transformer:
    """A model without memory, for its names and shapes.

    Raises:
        ValueError: the sizes do not go together.
    """
    with torch.device("meta"):
        return Transformer(config)


def write_vocabulary(folder: Path, vocabulary: Subwords) -> None:
    """Write vocabulary.json."""
    write_atomic(folder / VOCABULARY, f"{vocabulary.to_json()}\n".encode())


def read_vocabulary(folder: Path, size: int = LARGEST["src_vocab_size"]) -> Subwords:
    """Read vocabulary.json.

    Args:
        size: how many pieces it may hold; a larger file than they need is not read.

    Raises:
        Refused: it is missing, too large, or no subword vocabulary.
    """
    path = folder / VOCABULARY
    text = _read_text(path, 1_000_000 + 300 * size)  # a piece and its merge take 4 LONGEST and less
    try:
        return Subwords.from_json(text)
    except ValueError as error:
        raise Refused(f"{path}: {error}. Copy it again, or train again") from None


class Best(NamedTuple):
    """How good some weights are on the validation sentences, and the update that made them."""

    score: float
    measure: str  # BLEU, or chrF2 where BLEU says nothing
    loss: float  # per token, without label smoothing
    step: int


def _digest(vocabulary: Subwords) -> str:
    """Of its pieces and merges."""
    content = json.loads(vocabulary.to_json())["model"]
    return hashlib.sha256(json.dumps([content["vocab"], content["merges"]]).encode()).hexdigest()


def check_vocabulary(folder: Path, vocabulary: Subwords) -> None:
    """Make sure that the weights learnt with this vocabulary; earlier versions did not say so.

    Raises:
        Refused: they did not, or cannot be read.
    """
    if read_header(folder / WEIGHTS).get("vocabulary") not in (None, _digest(vocabulary)):
        raise Refused(
            f"{folder / WEIGHTS} was trained with another vocabulary than {VOCABULARY} beside it: "
            "the files must come from the same training"
        )


def write_weights(
    folder: Path, weights: Mapping[str, Tensor], best: Best, vocabulary: Subwords
) -> None:
    """Write model.safetensors."""
    header = {best.measure.lower(): best.score, "loss": best.loss, "step": best.step}
    lines = {k: json.dumps(v) for k, v in header.items()}
    write_tensors(folder / WEIGHTS, weights, {**lines, "vocabulary": _digest(vocabulary)})


def read_best(folder: Path) -> Best | None:
    """What is known of the weights in the folder; None before the first ones.

    Raises:
        Refused: `train` has not written them.
    """
    if not (folder / WEIGHTS).exists():
        return None
    header = read_header(folder / WEIGHTS)
    try:
        measure = "chrF2" if "chrf2" in header else "BLEU"
        score, step = json.loads(header[measure.lower()]), json.loads(header["step"])
        loss = json.loads(header.get("loss", "Infinity"))  # earlier versions wrote none
        # sacreBLEU's 100 is 100.00000000000004
        if not (0 <= score <= 101 and loss >= 0 and 0 <= step < 2**53):
            raise ValueError
        return Best(float(score), measure, float(loss), int(step))
    except (KeyError, ValueError, TypeError, RecursionError):
        raise Refused(f"{folder / WEIGHTS} does not say its score: `train` has not written it"
                      ) from None  # fmt: skip


def found(folder: str | Path) -> Path:
    """The folder, or that of the model which ships with the course under this name."""
    if Path(folder).exists():
        return Path(folder)
    shipped = trained_models()
    if str(folder) not in shipped:
        raise Refused(
            f"there is no folder {folder}: name the one that `train --out` has written, or a model "
            f"that ships with the course ({', '.join(shipped)})"
        )
    return shipped[str(folder)]


def load_model(
    folder: str | Path, device: torch.device | str = "cpu"
) -> tuple[Transformer, Subwords]:
    """The model of a folder in evaluation mode, and the vocabulary of both its languages.

    It computes in float64 wherever the device can: rounding is then too small to choose between
    two tokens, so that a sentence has one translation, whatever stands beside it in a batch.

    Args:
        folder: a path, or where there is none the name of a model that ships with the course.

    Raises:
        Refused: a file is missing, damaged, or does not fit the others.
    """
    folder = found(folder)
    config = read_config(folder)
    vocabulary = read_vocabulary(folder, config.src_vocab_size)
    sizes = (config.src_vocab_size, config.tgt_vocab_size)
    if sizes != (len(vocabulary),) * 2:
        raise Refused(
            f"{folder / VOCABULARY} holds {len(vocabulary):,} pieces, but config.json says "
            f"{sizes[0]:,} and {sizes[1]:,}: the files must come from the same training"
        )
    path = folder / WEIGHTS
    if not path.exists():
        raise Refused(
            f"there is no {WEIGHTS} in {folder} yet: `train` writes it at its first validation"
        )
    check_vocabulary(folder, vocabulary)
    weights = read_tensors(path, weights_of(empty_model(config)))
    if not all_finite(weights):
        raise Refused(f"{path} holds infinity or NaN: train again")
    model = Transformer(config)
    model.load_state_dict(weights, strict=False)  # shared and computed tensors need no loading
    model.to(device).eval()
    if torch.device(device).type != "mps":
        model.double()
    return model, vocabulary
