"""A trained model as the live page carries it."""

import base64
import json
from pathlib import Path

from safetensors.torch import save

from course_utils.models.transformer import TransformerConfig
from course_utils.text.vocab import RESERVED
from course_utils.training.runs.folder import load_model, weights_of

RUNS = {"norm_first": True, "positions": "sinusoidal", "bias": False, "tie_output": True}


def pack_model(folder: str | Path) -> dict:
    """What `tokens.js` and `transformer.js` are made from, as plain data.

    Returns:
        config (its sizes), tokens (pieces by id, merges, how many ids are reserved) and weights:
        a safetensors file in half precision, as base64 text. Weights of more bits are rounded.

    Raises:
        Refused: the folder cannot be read. ValueError: the page cannot run this kind of model.
    """
    model, vocabulary = load_model(folder)
    check_kind(model.config)
    content = json.loads(vocabulary.to_json())["model"]
    ids = content["vocab"]
    weights = {name: x.detach().half() for name, x in weights_of(model).items()}
    sizes = ("d_model", "num_heads", "max_len", "num_encoder_layers", "num_decoder_layers")
    return {
        "config": {name: getattr(model.config, name) for name in sizes},
        "tokens": {
            "pieces": sorted(ids, key=ids.get),
            "merges": content["merges"],
            "reserved": len(RESERVED),
        },
        "weights": base64.b64encode(save(weights)).decode("ascii"),
    }


def check_kind(config: TransformerConfig) -> None:
    """Raise ValueError for a model that `transformer.js` does not compute."""
    odd = [f"{name} = {getattr(config, name)!r}" for name, value in RUNS.items()
           if getattr(config, name) != value]  # fmt: skip
    if odd:
        wanted = ", ".join(f"{name} = {value!r}" for name, value in RUNS.items())
        raise ValueError(f"the live page runs models with {wanted}; this one has {', '.join(odd)}")
