"""Checks that the model is still the one whose hashes are in every result. User code has it as a variable, and may have changed it.

What code changes and puts back while a request is computed goes unseen, and so does what it changes outside of the model, as in torch itself.
"""

from __future__ import annotations

from typing import Any

from torch.nn.modules import module as torch_modules

from cuvette_torch.errors import EngineError
from cuvette_torch.fingerprint import Fingerprint

NOT_THE_MODEL = "The lab's results would not be those of the model they name. "
LIBRARIES = ("transformers.", "accelerate.")


class Integrity:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.forwards = {module: module.__dict__.get("forward") for module in model.modules()}
        self.methods = {type(module): type(module).forward for module in model.modules()}
        self.modules = modules_of(model)
        self.marks = marks_of(model)
        self.fingerprint = Fingerprint(model)

    def check(self) -> None:
        hooked = [name or "the model itself" for name, module in self.model.named_modules() if has_hooks(module)]
        if torch_modules._global_forward_hooks or torch_modules._global_forward_pre_hooks:
            hooked.append("all modules")
        if hooked:
            raise EngineError(
                "invalid_input",
                "Code has put hooks on the model, at %s. %sRemove them (handle.remove()) and ask again." % (", ".join(hooked[:3]), NOT_THE_MODEL),
            )
        if self.model.training:
            raise EngineError("invalid_input", "Code has switched the model to training. Call model.eval() and ask again.")
        if modules_of(self.model) != self.modules:
            raise EngineError(
                "invalid_input",
                "Code has put other modules into the model. %sPut back those that were there, or reset the interpreter, and ask again." % NOT_THE_MODEL,
            )
        replaced = [name or "the model itself" for name, module in self.model.named_modules() if self.has_other_forward(module)]
        if replaced:
            raise EngineError(
                "invalid_input",
                "Code has replaced the method forward, at %s. %sPut it back (del module.forward), or reset the interpreter, and ask again."
                % (", ".join(replaced[:3]), NOT_THE_MODEL),
            )
        if marks_of(self.model) != self.marks:
            raise changed()

    def check_numbers(self) -> None:
        """Compares the fingerprint, which takes longer."""
        if Fingerprint(self.model) != self.fingerprint:
            raise changed()

    def has_other_forward(self, module: Any) -> bool:
        if type(module).forward is not self.methods[type(module)]:
            return True
        forward = module.__dict__.get("forward")
        return forward is not self.forwards[module] and forward is not None and not is_of_library(forward, module)


def changed() -> EngineError:
    return EngineError(
        "invalid_input",
        "Code has changed the model's weights, so that the lab's results would not be those of the model they name. "
        "To study the changed model, write it to a folder with model.save_pretrained and tokenizer.save_pretrained, and open that; "
        "for the one that was loaded, reset the interpreter.",
    )


def modules_of(model: Any) -> list[Any]:
    return [(name, id(module), type(module)) for name, module in model.named_modules()]


def marks_of(model: Any) -> list[Any]:
    """Lists each weight with torch's own count of writes to it, which misses those by way of `.data`. An offloaded weight is left out: it is loaded as
    another tensor each time."""
    return [(name, id(tensor), tensor._version) for name, tensor in model.named_parameters() if not tensor.is_meta]


def is_of_library(forward: Any, module: Any) -> bool:
    """Says whether a library has set this `forward`: libraries wrap the method for a while, and put the module's own back as an attribute. A function's name
    and module may be copied from the one that it wraps; its globals may not."""
    if getattr(forward, "__func__", None) is type(module).forward:
        return forward.__self__ is module
    function = getattr(forward, "func", forward)
    return str(getattr(function, "__globals__", {}).get("__name__", "")).startswith(LIBRARIES)


def has_hooks(module: Any) -> bool:
    """Says whether code has set hooks; those of transformers and accelerate belong to the model, and change nothing by themselves."""
    if not module._forward_hooks and not module._forward_pre_hooks:
        return False
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return not all(str(getattr(hook, "__module__", "")).startswith(LIBRARIES) for hook in hooks)
