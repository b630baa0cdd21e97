"""A proxy that puts a service at a distance: every byte takes half of the round-trip time on its way, and so does the
opening of a connection. Run as `python -m benchmarks.proxy PORT MILLISECONDS`; prints the port it listens on."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

CHUNK = 64 * 1024


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Pass on what comes, each piece `delay` seconds after it came."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def take() -> None:
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(CHUNK)
            except OSError:  # a reset is an end, too
                piece = b""
            queue.put_nowait((loop.time() + delay, piece))

    taking = asyncio.create_task(take())
    with suppress(OSError):
        while True:
            due, piece = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    await taking


async def serve(port: int, delay: float) -> None:
    """Forward connections to `port` on this machine, a round trip taking twice `delay` seconds."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2 * delay)  # the handshake, which the kernel has answered already
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_carry(reader, far_writer, delay), _carry(far_reader, writer, delay))
            far_writer.close()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 2000))
