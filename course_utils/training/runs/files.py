"""Files that are either whole or not there: atomic writes, and tensors without pickle."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from course_utils.training.runs.refusals import Refused

UNFINISHED = ".unfinished-"  # how the names of files begin that are being written
LARGEST_HEADER = 16_000_000  # bytes; the names and shapes of 512 layers take half of it
_ROOM, _FOLDER = "make room there", "make its folder first"
_MENDS = {
    errno.ENOSPC: _ROOM,
    errno.EFBIG: _ROOM,
    getattr(errno, "EDQUOT", errno.ENOSPC): _ROOM,
    errno.ENOENT: _FOLDER,
    errno.ENOTDIR: _FOLDER,
    errno.EISDIR: "name a file, not a folder",
}


class CannotWrite(Refused):
    """A file cannot be written; what stood there before still does."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, meets the old one or the new one.

    Raises:
        CannotWrite: the disk is full, or the folder is missing or may not be written to; the old
            file stays.
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
        mend = _MENDS.get(error.errno, "make sure that you may write there")
        raise CannotWrite(f"cannot write {path}: {error.strerror or error}; {mend}") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk, where one may; Windows cannot, and does so by itself."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):  # the file is in its place
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process has left half written."""
    for path in folder.glob(f"{UNFINISHED}*"):
        if path.is_symlink() or path.is_file():
            path.unlink()


def check_name(path: Path) -> None:
    """Refuse a name that is not UTF-8, for the library of the weights opens no such file."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(f"the name {str(path)!r} is not UTF-8: take another name") from None


def new_folder(path: Path) -> None:
    """Make a folder to write into.

    Raises:
        Refused: something stands there, or it cannot be made.
    """
    check_name(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise Refused(f"{path} exists and is not empty: name a new folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the folder {path}: {error.strerror}") from None


def _forbidden(path: Path) -> Refused:
    return Refused(f"you may not read {path}: ask its owner, or change its mode")


def read_text(path: Path, most: int) -> str:
    """The text of a small UTF-8 file, of which no more than `most` bytes are ever read.

    Raises:
        FileNotFoundError: there is none.
        Refused: it is no file (a folder, a pipe, a device), or larger, or may not be read.
        UnicodeDecodeError: it is no UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is no file: copy it again, or train again")
        with open(path, "rb") as file:
            data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    except PermissionError:
        raise _forbidden(path) from None
    if data is None or len(data) > most:
        raise Refused(
            f"{path} is larger than {most:,} bytes, which no such file needs: `train` has not "
            "written it"
        )
    return data.decode("utf-8")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write named tensors and lines of text as a safetensors file, atomically."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomic(path, save(on_cpu, dict(header)))


def read_header(path: Path) -> dict[str, str]:
    """The lines of text of a safetensors file; see `read_tensors`."""
    return _open(path, lambda file: dict(file.metadata() or {}))


def read_tensors(path: Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, if they have the names and shapes of `wanted`.

    Half precision is widened to single precision. Nothing larger than wanted is read. The format
    holds numbers only, so a file from a stranger cannot run code.

    Args:
        wanted: float32 tensors; they may be without memory.

    Raises:
        Refused: the file is missing, cut off or damaged, may not be read, or holds something
            else.
    """

    def read(file) -> dict[str, Tensor]:
        _check(path, file, wanted)
        # copies: what the library maps would keep the file in use, though it is replaced later
        return {name: file.get_tensor(name).to(torch.float32, copy=True) for name in wanted}

    return _open(path, read)


def check_tensors(path: Path, wanted: Mapping[str, Tensor]) -> None:
    """Raise what `read_tensors` would raise, and read nothing but the header."""
    _open(path, lambda file: _check(path, file, wanted))


def _check(path: Path, file, wanted: Mapping[str, Tensor]) -> None:
    found = set(file.keys())
    if found != set(wanted):
        odd = sorted(found ^ set(wanted))
        raise Refused(
            f"{path} does not fit its config.json: {len(wanted)} tensors are wanted, it holds "
            f"{len(found)}; the first that only one of them has is {odd[0][:80]!r}. "
            "The two files must come from the same training"
        )
    for name, like in wanted.items():
        stored = file.get_slice(name)
        shape = tuple(stored.get_shape())
        if shape != tuple(like.shape):
            raise Refused(
                f"{path} does not fit its config.json: {name} has shape {shape}, wanted is "
                f"{tuple(like.shape)}. The two files must come from the same training"
            )
        if stored.get_dtype() not in ("F32", "F16"):
            raise Refused(
                f"{path}: {name} is of type {stored.get_dtype()}, wanted is F32 (float32) or F16 "
                "(float16): save the weights in such a type"
            )


def _open(path: Path, use):
    check_name(path)
    try:
        if not path.is_file():
            raise Refused(f"there is no {path.name} in {path.parent}")
        with open(path, "rb") as file:
            if int.from_bytes(file.read(8), "little") > LARGEST_HEADER:
                raise OSError("the length of its header is absurd")
        with safe_open(path, "pt") as file:
            return use(file)
    except PermissionError:
        raise _forbidden(path) from None
    except (SafetensorError, OSError) as error:
        raise Refused(
            f"{path} is cut off or damaged ({error}): copy it again from where it is whole, or "
            "train again"
        ) from None


def all_finite(tensors: Mapping[str, Tensor]) -> bool:
    """Whether no tensor holds infinity or NaN."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
