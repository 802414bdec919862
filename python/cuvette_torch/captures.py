"""Gives code the lab's captures as tensors, which are loaded from disk when one is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from safetensors.torch import load_file


class Captures(Mapping[str, torch.Tensor]):
    """`captures[id]` is a tensor of prompts × width; where a capture has several hook points or positions, × their number before that, hook points first.

    `captures.record(id)` tells what its dimensions are: prompts, labels, hook points, positions.
    """

    def __init__(self) -> None:
        self.folder: str | None = None

    def __getitem__(self, id: str) -> torch.Tensor:
        record = self.record(id)
        tensors = load_file(os.path.join(str(self.folder), id, "activations.safetensors"))
        points = [[tensors["%s@%d" % (point, at["position"])] for at in record["positions"]] for point in record["points"]]
        whole = torch.stack([torch.stack(positions) for positions in points])
        return whole.reshape([size for size in whole.shape[:2] if size > 1] + list(whole.shape[2:]))

    def record(self, id: str) -> dict[str, Any]:
        if id not in list(self):
            raise KeyError("There is no capture %s. There are: %s" % (id, ", ".join(self) or "none yet"))
        with open(os.path.join(str(self.folder), id, "capture.json"), encoding="utf-8") as file:
            return json.load(file)

    def __iter__(self) -> Iterator[str]:
        names = os.listdir(self.folder) if self.folder and os.path.isdir(self.folder) else []
        return iter(sorted(name for name in names if not name.startswith(".")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "captures: %s" % (", ".join(self) or "none yet")
