"""Files that are either whole or not there: atomic writes, and tensors without pickle."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from course_utils.engine.command import Refused

UNFINISHED = ".unfinished-"  # how the names of files begin that are being written


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, meets the old one or the new one.

    Raises:
        Refused: the disk is full, or the folder may not be written to; the old file stays.
    """
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes files that only their owner reads
        os.replace(temporary, path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk; Windows cannot, and does so by itself."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process has left half written."""
    for path in folder.glob(f"{UNFINISHED}*"):
        path.unlink()


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write named tensors and lines of text as a safetensors file, atomically."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomic(path, save(on_cpu, dict(header)))


def read_header(path: Path) -> dict[str, str]:
    """The lines of text of a safetensors file; see `read_tensors`."""
    return _open(path, lambda file: dict(file.metadata() or {}))


def read_tensors(path: Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, if they have the names, shapes and types of `wanted`.

    Nothing larger than wanted is read. The format holds numbers only, so a file from a stranger
    cannot run code.

    Raises:
        Refused: the file is missing, cut off or damaged, or holds something else.
    """

    def read(file) -> dict[str, Tensor]:
        found = set(file.keys())
        if found != set(wanted):
            odd = sorted(found ^ set(wanted))
            raise Refused(
                f"{path} does not fit its config.json: {len(wanted)} tensors are wanted, it holds "
                f"{len(found)}; the first that only one of them has is {odd[0]!r}. "
                "The two files must come from the same training"
            )
        tensors = {}
        for name, like in wanted.items():
            shape = tuple(file.get_slice(name).get_shape())
            if shape != tuple(like.shape):
                raise Refused(
                    f"{path} does not fit its config.json: {name} has shape {shape}, wanted is "
                    f"{tuple(like.shape)}. The two files must come from the same training"
                )
            tensors[name] = file.get_tensor(name)
            if tensors[name].dtype != like.dtype:
                raise Refused(
                    f"{path}: {name} is of type {tensors[name].dtype}, wanted is {like.dtype}: "
                    "save the weights in that type"
                )
        return tensors

    return _open(path, read)


def _open(path: Path, use):
    if not path.is_file():
        raise Refused(f"there is no {path.name} in {path.parent}")
    try:
        with safe_open(path, "pt") as file:
            return use(file)
    except (SafetensorError, OSError) as error:
        raise Refused(
            f"{path} is cut off or damaged ({error}): copy it again from where it is whole, or "
            "train again"
        ) from None


def all_finite(tensors: Mapping[str, Tensor]) -> bool:
    """Whether no tensor holds infinity or NaN."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
