"""Arranges the template's memory before it forks, so that children have few pages to copy."""

from __future__ import annotations

from cuvette_driver import linux

# Bytes to allocate for each size of object; more would fill no more gaps.
GAPS = 150 << 10

_gaps: list[list[object]] = []


def fill_gaps() -> None:
    """Leaves no free memory among the objects that children share: what a child makes then stands on pages of its own.

    Otherwise each small thing that it makes or frees would be the first write to another shared page, and copy it.
    """
    # Asked for a large piece, C's allocator first sorts all its free memory; children then need not write to it.
    bytearray(100_000)
    for size in range(24, 513, 16):
        linux.allocate(size, GAPS // size)
    # Python's own allocator has pools for each size up to 512 bytes, and leaves larger objects to C's; these objects fill both.
    _gaps.append([object() for _ in range(GAPS // 16)])
    _gaps.append([float(number) for number in range(GAPS // 32)])
    sizes = [*range(48, 513, 16), *range(528, 4096, 64)]
    _gaps.extend([bytes(size - 33) for _ in range(GAPS // size)] for size in sizes)
