"""Frames messages with tensors over a stream socket: a length, a header in JSON, then the numbers of the tensors, little-endian, one after the other.

The header names each tensor's kind and shape. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any

import torch

KINDS = {"float32": torch.float32, "float64": torch.float64, "int32": torch.int32}
LONGEST_HEADER = 1 << 28

assert sys.byteorder == "little", "The torch engine needs a little-endian machine."


def send(sock: socket.socket, header: dict[str, Any], tensors: Sequence[torch.Tensor] = ()) -> None:
    tensors = [tensor.detach().cpu().contiguous() for tensor in tensors]
    described = [[str(tensor.dtype).replace("torch.", ""), list(tensor.shape)] for tensor in tensors]
    encoded = json.dumps({**header, "tensors": described}).encode()
    # Converted first, so that a tensor that cannot be sent fails before any part of the message is sent.
    numbers = [memoryview(tensor.numpy()).cast("B") for tensor in tensors if tensor.numel() > 0]
    sock.sendall(struct.pack("<I", len(encoded)) + encoded)
    for some in numbers:
        sock.sendall(some)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
    """The next message, or None when the other side is gone."""
    length = read(sock, 4)
    if length is None:
        return None
    size = struct.unpack("<I", length)[0]
    encoded = read(sock, size) if size <= LONGEST_HEADER else None
    if encoded is None:
        return None
    header = json.loads(encoded)
    tensors = []
    for kind, shape in header.get("tensors", []):
        tensor = torch.empty(shape, dtype=KINDS[kind])
        if tensor.numel() > 0 and not read_into(sock, memoryview(tensor.numpy()).cast("B")):
            return None
        tensors.append(tensor)
    return header, tensors


def read(sock: socket.socket, size: int) -> bytes | None:
    buffer = bytearray(size)
    return bytes(buffer) if read_into(sock, memoryview(buffer)) else None


def read_into(sock: socket.socket, view: memoryview) -> bool:
    done = 0
    while done < len(view):
        received = sock.recv_into(view[done:])
        if received == 0:
            return False
        done += received
    return True
