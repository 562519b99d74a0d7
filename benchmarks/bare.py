"""The web framework alone, which answers every recall with the same ten memories.

    python -m benchmarks.bare

Prints its URL as a line of JSON, and serves until it is terminated.
"""

from __future__ import annotations

import json
import socket

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response

from retain import Memory

_MEMORY = Memory("m1", "what the framework alone would answer, whoever asks for whatever").to_dict()
ANSWER = json.dumps({"results": [{"memory": _MEMORY, "combined_score": 0.5}] * 10}).encode()


class Question(BaseModel):
    """What is asked, and not looked at."""

    query: str
    k: int


async def recall(body: Question) -> Response:
    """The answer."""
    return Response(ANSWER, media_type="application/json")


def main() -> None:
    """Serve."""
    app = FastAPI()
    app.add_api_route("/v1/recall", recall, methods=["POST"], response_model=None)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([listener])


if __name__ == "__main__":
    main()
