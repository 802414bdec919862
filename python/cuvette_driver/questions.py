"""Answers the server's questions about a session between two executions: what a value looks like, how code can go on.

Nothing of that is an execution: it is not shown, and stands in no history. Which problems there can be is told by a code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from cuvette_driver import completion, inspection
from cuvette_driver.display import message_of
from cuvette_driver.kinds import type_name
from cuvette_driver.rendering import Budget, TooLong
from cuvette_driver.tables import Unsortable
from cuvette_driver.value_paths import NoSuchValue
from cuvette_driver.wire import Message, checked_number

if TYPE_CHECKING:
    from cuvette_driver.worker import Shell

# Of the time that a question has until it is interrupted: what can be given up in good order is given up before.
OWN_SHARE = 0.8
TOO_LONG: Message = {"code": "timeout", "message": "This took too long, and was given up."}

ANSWERS: dict[str, Callable[[Shell, Message, Budget], Message]] = {
    "inspect": lambda shell, request, budget: inspection.inspect(shell.namespace, request, budget),
    "complete": lambda shell, request, _: completion.complete(shell, request),
}


def answer(shell: Shell, request: Message) -> Message:
    """What there is to say: an `answer`, or a `problem`."""
    budget = Budget(checked_number(request["timeout"]) * OWN_SHARE)
    try:
        return {"answer": ANSWERS[request["op"]](shell, request, budget)}
    except NoSuchValue as error:
        return {"problem": {"code": "missing", "message": str(error)}}
    except Unsortable as error:
        return {"problem": {"code": "invalid", "message": str(error)}}
    except (TooLong, KeyboardInterrupt):
        return {"problem": TOO_LONG}
    except BaseException as error:
        return {"problem": {"code": "failed", "message": "Looking at it raised %s: %s" % (type_name(type(error)), message_of(error))}}
