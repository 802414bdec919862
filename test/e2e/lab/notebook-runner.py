"""Runs the code cells of a notebook as Colab would: one after the other, in one namespace, with Colab's secrets. The internet is a table of URLs."""

import io
import json
import os
import sys
import types
import urllib.request

asked = json.loads(sys.stdin.read())

userdata = types.ModuleType("google.colab.userdata")


class SecretNotFoundError(Exception):
    pass


def get(name):
    if name not in asked["secrets"]:
        raise SecretNotFoundError(f"Secret {name} does not exist.")
    return asked["secrets"][name]


userdata.get = get
userdata.SecretNotFoundError = SecretNotFoundError
if asked["is_colab"]:
    colab = types.ModuleType("google.colab")
    colab.userdata = userdata
    sys.modules.update({"google": types.ModuleType("google"), "google.colab": colab, "google.colab.userdata": userdata})

real_open = urllib.request.urlopen


def open_local(request, **options):
    url = request if isinstance(request, str) else request.full_url
    if url.startswith("http://127.0.0.1:"):
        return real_open(request, **options)
    if url not in asked["internet"]:
        raise RuntimeError(f"The notebook asked for {url}, which the test does not have.")
    with open(asked["internet"][url], "rb") as file:
        return io.BytesIO(file.read())


urllib.request.urlopen = open_local

with open(asked["notebook"]) as file:
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"}
namespace = {"__name__": "__main__"}
for name in asked["cells"]:
    if name.startswith("!"):
        exec(name[1:], namespace)  # What the person at the notebook changes in between.
        continue
    exec(compile(cells[name], f"cell {name}", "exec"), namespace)
    print(f"-- {name} done", flush=True)
