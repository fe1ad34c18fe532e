# SPDX-License-Identifier: GPL-2.0-only
"""Addresses of servers that tests start on this machine."""

import socket


def free_port():
    """A port of 127.0.0.1 that nothing listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
