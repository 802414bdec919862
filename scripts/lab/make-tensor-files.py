"""Makes small .pt and .npz files, as torch and numpy save them, and what they hold, into test/lab/fixtures/tensors.

Needs torch and numpy:

    python scripts/lab/make-tensor-files.py
"""

import json
import shutil
from pathlib import Path

import numpy as np
import torch

OUT = Path(__file__).resolve().parents[2] / "test" / "lab" / "fixtures" / "tensors"


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    torch.manual_seed(3)
    torch_files()
    numpy_files()


def torch_files():
    matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensors = {
        "float": matrix, "half": matrix.half() / 3, "bfloat": matrix.bfloat16() / 3, "double": matrix.double() / 3,
        "long": torch.tensor([1, -2, 2**40]), "int": torch.tensor([1, -2], dtype=torch.int32),
        "short": torch.tensor([300, -300], dtype=torch.int16), "char": torch.tensor([5, -5], dtype=torch.int8),
        "byte": torch.tensor([0, 255], dtype=torch.uint8), "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "transposed": matrix.T, "row": matrix[1], "column": matrix[:, 1],
        "corner": matrix[1:, 2:], "parameter": torch.nn.Parameter(matrix + 1), "cube": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    }
    nested = {"state": tensors, "list": [torch.tensor([1.0]), torch.tensor([2.0])]}
    settings = {"layer": 12, "bias": -0.25, "name": "truth", "trained": True, "dtype": torch.float32, "none": None, "large": 2**70,
                "shape": matrix.shape, "device": torch.device("cpu")}
    torch.save({**nested, **settings}, OUT / "tensors.pt")
    torch.save(torch.tensor([1.0, 2.0, 3.0]), OUT / "bare.pt")
    torch.save({"a": matrix}, OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    module = torch.nn.Linear(2, 3)
    torch.save(module, OUT / "module.pt")
    torch.save(module.state_dict(), OUT / "state.pt")
    flat = {f"state.{name}": tensor for name, tensor in tensors.items()} | {"list.0": nested["list"][0], "list.1": nested["list"][1]}
    reference = {name: {"shape": list(tensor.shape), "data": tensor.detach().float().flatten().tolist()} for name, tensor in flat.items()}
    (OUT / "tensors.json").write_text(json.dumps(reference))


def numpy_files():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4) / 3
    arrays = {
        "float": matrix, "half": matrix.astype("<f2"), "double": matrix.astype("<f8"), "fortran": np.asfortranarray(matrix),
        "long": np.array([1, -2, 2**40]), "int": np.array([1, -2], dtype=np.int32), "bool": np.array([True, False]),
        "byte": np.array([0, 255], dtype=np.uint8), "scalar": np.float32(2.5), "vector": np.asfortranarray(matrix[0]),
    }
    np.savez(OUT / "stored.npz", **arrays)
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    np.savez(OUT / "objects.npz", a=np.array([{"x": 1}], dtype=object))
    np.savez(OUT / "big-endian.npz", a=matrix.astype(">f4"))
    reference = {name: {"shape": list(np.shape(array)), "data": np.asarray(array, np.float32).flatten().tolist()} for name, array in arrays.items()}
    (OUT / "arrays.json").write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
