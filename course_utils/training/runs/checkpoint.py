"""last.safetensors: all that a training needs to go on as if it had never been stopped.

Tensors: the weights, their moving average, and both moments of Adam. The header holds lines of
JSON: the settings, a digest of the corpus, the update's number, the seconds so far, and how many
validations are done. Batches and dropout follow from the seed and the update's number, so no
state of a random number generator is needed.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.training.runs.files import check_tensors, read_header, read_tensors, write_tensors
from course_utils.training.runs.folder import weights_of
from course_utils.training.runs.refusals import Refused

LAST = "last.safetensors"
FIELDS = {"settings": dict, "digest": str, "step": int, "seconds": float, "validated": int}
MOMENTS = ("exp_avg", "exp_avg_sq")


def save(
    folder: Path,
    model: nn.Module,
    average: nn.Module,
    optimizer: torch.optim.Optimizer,
    fields: dict[str, Any],
) -> None:
    """Write the checkpoint, atomically; the optimiser must have made an update."""
    tensors = {}
    for name, weights in weights_of(model).items():
        tensors[f"model/{name}"] = weights
        for moment in MOMENTS:
            tensors[f"{moment}/{name}"] = optimizer.state[weights][moment]
    for name, weights in weights_of(average).items():
        tensors[f"average/{name}"] = weights
    header = {name: json.dumps(fields[name]) for name in FIELDS}
    write_tensors(folder / LAST, tensors, header)


def read_fields(folder: Path) -> dict[str, Any] | None:
    """The header of the checkpoint; None if there is no checkpoint.

    Raises:
        Refused: it is cut off or damaged, or something else stands in it.
    """
    path = folder / LAST
    if not path.exists():
        return None
    header = read_header(path)
    try:
        fields = {name: json.loads(header[name]) for name in FIELDS}
        sound = all(type(fields[name]) is kind for name, kind in FIELDS.items())
        sound = sound and 1 <= fields["step"] < 2**53 and fields["validated"] >= 0
        sound = sound and 0 <= fields["seconds"] < float("inf")
    except (KeyError, ValueError, RecursionError):
        sound = False
    if not sound:
        raise Refused(f"{path} is no checkpoint of `train`: start anew in another --out")
    return fields


def _wanted(weights: dict[str, Tensor], averaged: dict[str, Tensor]) -> dict[str, Tensor]:
    wanted = {f"{part}/{name}": w for part in ("model", *MOMENTS) for name, w in weights.items()}
    return wanted | {f"average/{name}": w for name, w in averaged.items()}


def check(folder: Path, model: nn.Module) -> None:
    """Make sure that the checkpoint is one of such a model, which may be without memory.

    Raises:
        Refused: it is not.
    """
    weights = weights_of(model)
    check_tensors(folder / LAST, _wanted(weights, weights))


def load(
    folder: Path, model: nn.Module, average: nn.Module, optimizer: torch.optim.Optimizer, step: int
) -> None:
    """Put the tensors of the checkpoint where they came from.

    Raises:
        Refused: they do not fit.
    """
    weights, averaged = weights_of(model), weights_of(average)
    tensors = read_tensors(folder / LAST, _wanted(weights, averaged))
    with torch.no_grad():
        for name in weights:
            weights[name].copy_(tensors[f"model/{name}"])
            averaged[name].copy_(tensors[f"average/{name}"])

    def state(name: str) -> dict[str, Tensor]:
        moments = {moment: tensors[f"{moment}/{name}"] for moment in MOMENTS}
        return {"step": torch.tensor(float(step)), **moments}

    groups = optimizer.state_dict()["param_groups"]
    states = {index: state(name) for index, name in enumerate(weights)}
    optimizer.load_state_dict({"state": states, "param_groups": groups})
