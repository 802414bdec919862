"""Holds the Unix socket file by which servers find a session: says whether it is still there, and removes it at the end."""

from __future__ import annotations

import os


class SessionSocket:
    """Reaches the file through a descriptor, because its path is hidden from a confined session, the keeper included. Without a path there is no file."""

    def __init__(self, path: str = "") -> None:
        self.folder_fd = -1
        self._path = ""
        self._inode = 0
        if path:
            folder, name = os.path.split(path)
            self.folder_fd = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._path = os.path.join(os.path.basename(folder), name)
            self._inode = os.stat(self._path, dir_fd=self.folder_fd).st_ino

    def exists(self) -> bool:
        return not self._path or os.access(self._path, os.F_OK, dir_fd=self.folder_fd)

    def remove(self) -> None:
        """Removes the file with its folder, unless another keeper has replaced it since."""
        if not self._path:
            return
        try:
            if os.stat(self._path, dir_fd=self.folder_fd).st_ino == self._inode:
                os.unlink(self._path, dir_fd=self.folder_fd)
        except OSError:
            pass  # It was removed already.
        try:
            os.rmdir(os.path.dirname(self._path), dir_fd=self.folder_fd)
        except OSError:
            pass  # The folder is gone, or another keeper uses it.
