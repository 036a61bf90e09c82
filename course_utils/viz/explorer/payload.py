"""A scene as plain data for the browser: tokens as text, numbers bit by bit."""

from dataclasses import asdict

import torch
from torch import Tensor

from course_utils.viz.explorer.scenes import Family, Scene


def pack(x: Tensor) -> dict:
    """A tensor as {dtype, shape, data}; data are its little-endian bytes in row-major order.

    float64 and float32 stay what they are, smaller floats become float32 and booleans uint8; none
    of this changes a number.
    """
    if x.dtype == torch.bool:
        x = x.to(torch.uint8)
    elif x.dtype != torch.float64:
        x = x.float()
    numbers = x.contiguous().numpy()
    return {
        "dtype": str(numbers.dtype),
        "shape": list(numbers.shape),
        "data": numbers.astype(numbers.dtype.newbyteorder("<")).tobytes(),
    }


def pack_family(family: Family) -> dict:
    """A family of maps with the arithmetic of all its layers."""
    return {
        "name": family.name,
        "queries": family.queries,
        "keys": family.keys,
        "query_label": family.query_label,
        "key_label": family.key_label,
        "grows": family.grows,
        "layers": [{name: pack(x) for name, x in layer.items()} for layer in family.layers],
    }


def pack_scene(scene: Scene, own_sentences: bool = False) -> dict:
    """All that `explorer.js` draws; with `own_sentences` it offers a line to type into."""
    return {
        "families": [pack_family(family) for family in scene.families],
        "source": scene.source,
        "said": scene.said,
        "notice": scene.notice,
        "steps": [asdict(step) for step in scene.steps],
        "own_sentences": own_sentences,
    }
