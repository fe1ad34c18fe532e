# SPDX-License-Identifier: GPL-2.0-only
"""A daemon of a test that answers at a UNIX socket as mgpud and mgpu-remoted do."""

import json
import socket
import threading


class Service(threading.Thread):
    """Answers every request with a state, and a watcher with an event, too, if there is one."""

    def __init__(self, path, state, event=None):
        super().__init__(daemon=True)
        self.state, self.event = state, event
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            client = self.listener.accept()[0]
            with client, client.makefile("rw", encoding="utf-8") as file:
                try:
                    for line in file:
                        self.answer(file, json.loads(line)["request"])
                except OSError:
                    pass    # the client has ended

    def answer(self, file, request):
        """Answer a request."""
        answers = [{"ok": True, "state": self.state}]
        if self.event and request == "watch":
            answers.append(self.event)
        for answer in answers:
            file.write(json.dumps(answer) + "\n")
        file.flush()
