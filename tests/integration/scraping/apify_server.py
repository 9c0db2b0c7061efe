"""Fake of Apify's API v2 on real sockets, as far as profiles need it, with scripted faults.

Its responses are the files under ``wire``, which come from Apify's documentation and users.
"""

import asyncio
import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

WIRE = {path.stem: json.loads(path.read_text()) for path in (Path(__file__).parent / "wire").glob("*.json")}
OVER = ("SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED")
LONG = 1_000  # more bytes than are ever sent


class Fault:
    """Scripted response to one call; ``does`` states whether the call is executed nevertheless."""

    def __init__(self, status=None, body=None, *, headers=None, how="answer", does=True):
        self.status, self.body, self.headers = status, body, headers or {}
        self.how, self.does = how, does


def api_error(name, headers=None):
    """Errors after which the call was not executed."""
    error = WIRE["errors"]["api"][name]
    body = {"error": {"type": error["type"], "message": "Words of theirs that are not to be repeated."}}
    return Fault(error["status"], body, headers=headers, does=False)


class ApifyServer:
    def __init__(self):
        self.runs = {}
        self.items = {}
        self.inputs = {}
        self.calls = []
        self.script = {}
        self.endings = []  # final states of the next runs; default SUCCEEDED
        self.datasets = []  # items of the next runs
        self.found_by = {}  # items by actor
        self.endless = set()  # actors whose runs do not end by themselves
        self.failing = set()  # actors whose runs fail
        self.usd = 0.0123
        self.never_ends = False
        self.stop_after = None  # stops listening after the response to this call
        self._server = None
        self._port = 0
        self._connections = set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    @property
    def running(self):
        return [run["id"] for run in self.runs.values() if run["status"] not in OVER]

    def called(self, name):
        return [call for call in self.calls if call["name"] == name]

    async def start(self):
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        if self._server is not None:
            self._server.close()
            self._server = None
            for connection in list(self._connections):
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._connections.add(asyncio.current_task())
        try:
            while call := await _read(reader):
                if not await self._answer(call, writer):
                    break
                if self.stop_after == call["name"]:
                    self.stop_after = None
                    self._server.close()
                    self._server = None
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(asyncio.current_task())
            writer.transport.abort()

    async def _answer(self, call, writer):
        self.calls.append(call)
        faults = self.script.get(call["name"], [])
        fault = faults.pop(0) if faults else Fault()
        status, body, headers = await self._do(call) if fault.does else (200, {}, {})
        if fault.how == "silence":
            await asyncio.Event().wait()
        if fault.how == "reset":
            writer.transport.abort()
            return False
        status = fault.status or status
        body = fault.body if fault.body is not None else body
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        await _write(writer, status, raw, {**headers, **fault.headers}, fault.how)
        if self.stop_after == call["name"]:
            writer.write_eof()
        return fault.how == "answer"

    async def _do(self, call):
        action = getattr(self, f"_{call['name']}")
        return action(call)

    def _start(self, call):
        number = len(self.runs) + 1
        run = copy.deepcopy(WIRE["run"]["data"])
        run.update(
            id=f"run{number}",
            actId=call["path"][2],
            defaultDatasetId=f"dataset{number}",
            status="READY",
            startedAt=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            finishedAt=None,
            meta={"origin": "API", "userAgent": call["headers"]["user-agent"]},
        )
        if self.usd is not None:
            run["usageTotalUsd"] = self.usd
        self.runs[run["id"]] = run
        self.inputs[run["id"]] = json.loads(call["body"])
        found = self.found_by.get(run["actId"]) or (self.datasets.pop(0) if self.datasets else [])
        self.items[run["defaultDatasetId"]] = found
        return 201, {"data": run}, {}

    def _wait(self, call):
        run = self.runs[call["path"][2]]
        if run["status"] not in OVER and not self.never_ends and run["actId"] not in self.endless:
            run["status"] = self.endings.pop(0) if self.endings else "SUCCEEDED"
            if run["actId"] in self.failing:
                run["status"] = "FAILED"
        elif run["status"] not in OVER:
            run["status"] = "RUNNING"
        return 200, {"data": run}, {}

    def _items(self, call):
        everything = self.items[call["path"][2]]
        offset, limit = int(call["query"].get("offset", 0)), int(call["query"].get("limit", 250_000))
        page = everything[offset : offset + limit]
        numbers = {"total": len(everything), "offset": offset, "count": len(page), "limit": limit}
        headers = {f"x-apify-pagination-{name}": str(number) for name, number in numbers.items()}
        return 200, page, {**headers, "x-apify-pagination-desc": "false"}

    def _abort(self, call):
        run = self.runs[call["path"][2]]
        if run["status"] not in OVER:
            run["status"] = "ABORTED"
        return 200, {"data": run}, {}


def _name(method, path):
    match method, path[1:]:
        case "POST", ["actors", _, "runs"]:
            return "start"
        case "GET", ["actor-runs", _]:
            return "wait"
        case "GET", ["datasets", _, "items"]:
            return "items"
        case "POST", ["actor-runs", _, "abort"]:
            return "abort"
    raise AssertionError(f"{method} {path}")


async def _read(reader):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split()
    parts = urlsplit(target)
    path = parts.path.strip("/").split("/")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    call = {"path": path, "query": query, "headers": headers, "body": body}
    return {**call, "name": _name(method, path)}


async def _write(writer, status, body, headers, how):
    lines = {"content-type": "application/json", **headers, "content-length": str(len(body))}
    if how in ("truncated", "drip"):
        lines["content-length"] = str(len(body) + LONG)
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"HTTP/1.1 {status} -\r\n{head}\r\n".encode())
    if how == "drip":
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)
    writer.write(body[: len(body) // 2] if how == "truncated" else body)
    await writer.drain()
