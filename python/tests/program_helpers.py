"""Helps tests of programs: gives a keeper of programs, what it is asked to run, and what it reports."""

import os
import random
import time

from harness import LIMIT, PATIENCE, Outcome, SessionTest

ENV = {"PATH": os.environ["PATH"]}


def shell(script, *args, **step):
    return {"argv": ["sh", "-c", script, "sh", *args], **step}


class ProgramTest(SessionTest):
    preload = ("--programs",)

    def setUp(self):
        super().setUp()
        self.folder = self.new_folder()

    def start(self, *steps, timeout=PATIENCE * 3, limit=LIMIT, session=None, **program):
        session = session or self.session
        session.count += 1
        given = {"steps": [shell(step) if isinstance(step, str) else step for step in steps], "cwd": self.folder, "env": ENV, "limits": {}, **program}
        session.send("execute", id=str(session.count), code="", cell=session.count, timeout=timeout, limit=limit, program=given)
        return str(session.count)

    def run_program(self, *steps, **options):
        return self.finish(self.start(*steps, **options), options.get("session"))

    def finish(self, id, session=None, wait=0.0):
        """Reads up to the end; the server's part after a step is to say that it may go on."""
        session = session or self.session
        outcome = Outcome()
        while outcome.done is None:
            event = session.receive()
            self.assertIsNotNone(event, "the keeper hung up; until then it said:\n%s" % outcome)
            self.assertEqual(event["id"], id, event)
            outcome.add(event)
            if event["ev"] == "built":
                time.sleep(wait)
                session.send("continue")
        return outcome

    def assert_works(self, session=None):
        mark = "mark %d" % random.randrange(10**9)
        outcome = self.run_program("echo '%s'" % mark, session=session or self.session)
        self.assertEqual((outcome.stdout, outcome.done["code"]), (mark + "\n", 0), outcome)

    def assert_stopped(self, outcome, why, rung):
        self.assertEqual(outcome.done["stopped"], {"why": why, "rung": rung}, outcome)
