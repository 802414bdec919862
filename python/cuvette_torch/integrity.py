"""Whether the model is still the one whose hashes are in every result. User code has it as a variable, and may have changed it."""

from __future__ import annotations

from typing import Any

from cuvette_torch.problems import Problem


class Integrity:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.marks = self.look()

    def check(self) -> None:
        hooked = [name or "the model itself" for name, module in self.model.named_modules() if has_hooks(module)]
        if hooked:
            raise Problem(
                "invalid_input",
                "Code has put hooks on the model, at %s. The lab's results would not be those of the model they name. "
                "Remove them (handle.remove()) and ask again." % ", ".join(hooked[:3]),
            )
        if self.model.training:
            raise Problem("invalid_input", "Code has switched the model to training. Call model.eval() and ask again.")
        if self.look() != self.marks:
            raise Problem(
                "invalid_input",
                "Code has changed the model's weights, so that the lab's results would not be those of the model they name. "
                "To study the changed model, write it to a folder with model.save_pretrained and tokenizer.save_pretrained, and open that; "
                "for the one that was loaded, reset the interpreter.",
            )

    def look(self) -> list[Any]:
        """A tensor that is written to counts its writes; one in its place is another."""
        return [(name, id(tensor), tensor._version) for name, tensor in self.model.named_parameters()]


def has_hooks(module: Any) -> bool:
    """Those of transformers and accelerate belong to the model: they change nothing unless they are asked to."""
    if not module._forward_hooks and not module._forward_pre_hooks:
        return False
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return not all(str(getattr(hook, "__module__", "")).startswith(("transformers.", "accelerate.")) for hook in hooks)
