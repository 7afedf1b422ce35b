"""A real S3 server on loopback, whose answers can be made to fail."""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "planewise-tests"


class FaultyServer:
    """moto's S3 server; of ``share`` of the requests one half is answered with 500, the other half with nothing."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.share = 0.0
        self.faults = 0
        self.requests: list[tuple[str, str]] = []
        self._random = random.Random(1)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        if self._random.random() < self.share:
            self.faults += 1
            if self._random.random() < 0.5:
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                return []
            # Half of the failures come after the work was done, as a lost answer does.
            if self._random.random() < 0.5:
                list(self._app(environ, lambda *_: lambda _: None))
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        return self._app(environ, start)  # type: ignore[no-any-return]
