"""How web requests are handled: each by one thread from its start to its end; streams by the loop.

Django's own handler goes to a thread and back for almost every middleware, signal and view, and
starts that thread for the one request: half of what a short request costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from typing import Any, Final, cast

from asgiref.sync import sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.db import close_old_connections
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

THREADS: Final = 200
"""The most requests at once. Threads come as they are needed, so that whoever waits for a database
that is away keeps nobody from an answer that needs none."""

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Handler(ASGIHandler):
    """Django's handler of requests, without its changes of thread in mid-request."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    def load_middleware(self, is_async: bool = False) -> None:
        """Load what stands around the views for use within a thread."""
        super().load_middleware(is_async=False)

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            set_script_prefix(get_script_prefix(scope))
            request, refusal = self.create_request(scope, body)
            response = await self._in_thread(request) if request else cast("HttpResponse", refusal)
            if response.streaming:
                await self._send_while_there(response, receive, send)
            else:
                await self.send_response(response, send)

    async def _in_thread(self, request: ASGIRequest) -> HttpResponseBase:
        # A context of its own, so that a request's language does not outlive it in the thread.
        answer = copy_context().run
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, answer, self._answer, request)

    def _answer(self, request: ASGIRequest) -> HttpResponseBase:
        """Make the response, and give back what this thread used for it."""
        signals.request_started.send(sender=type(self), scope=request.scope)
        try:
            response = self.get_response(request)
            response._handler_class = type(self)  # type: ignore[attr-defined]
            if isinstance(response, FileResponse):
                response.block_size = self.chunk_size
            if not response.streaming:
                # All of it is in memory; this also says that the request is finished.
                response.close()
            return response
        finally:
            # What streams has its end elsewhere, and its connections in other threads.
            close_old_connections()

    async def _send_while_there(
        self, response: HttpResponseBase, receive: Receive, send: Send
    ) -> None:
        """Send what has no known end until it ends, or until the browser has left."""
        left = asyncio.create_task(self.listen_for_disconnect(receive))
        sent = asyncio.create_task(self.send_response(response, send))
        try:
            await asyncio.wait((left, sent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = sent.done()
            for task in (left, sent):
                task.cancel()
            await asyncio.gather(left, sent, return_exceptions=True)
            await sync_to_async(response.close)()
        if ended:
            sent.result()
