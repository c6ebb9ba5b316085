#!/usr/bin/env python3
"""Brokers that misbehave: fake_broker.py NAME…

Each NAME of the table below listens on a port of its own; "NAME PORT" lines on stdout say which, then
an empty line. Ends when its standard input ends, so that it never outlives the test that started it.
"""
import asyncio
import os
import struct
import sys

# The ranges of a 3.9 broker, as far as a producer asks: (api key, min, max).
APIS = [(0, 0, 11), (3, 0, 12), (18, 0, 4), (22, 0, 5)]
NOISE = bytes((i * 7919 + 13) % 251 for i in range(4096))


def api_versions(version, apis):
    if version < 3:
        return struct.pack('>hi', 0, len(apis)) + b''.join(struct.pack('>hhh', *a) for a in apis) \
            + (struct.pack('>i', 0) if version else b'')
    return struct.pack('>hB', 0, len(apis) + 1) + b''.join(struct.pack('>hhhB', *a, 0) for a in apis) \
        + struct.pack('>iB', 0, 0)


def frame(correlation, body):
    return struct.pack('>ii', 4 + len(body), correlation) + body


async def requests(reader):
    """The requests of one connection: (api key, version, correlation id)."""
    while True:
        try:
            size, = struct.unpack('>i', await reader.readexactly(4))
            request = await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        yield struct.unpack_from('>hhi', request)


async def http(reader, writer):
    """A web server, as when the port is wrong."""
    await reader.read(1)
    writer.write(b'HTTP/1.1 400 Bad Request\r\nServer: not-kafka\r\nContent-Type: text/html\r\n'
                 b'Content-Length: 12\r\nConnection: close\r\n\r\nBad Request\n')
    await writer.drain()


async def closes(reader, writer):
    """Accepts and closes at once."""


async def closes_on_request(reader, writer):
    """Old brokers do this on a request that they do not know."""
    await reader.read(1)


async def garbage(reader, writer):
    """Bytes that make no sense, as the answer to anything."""
    await reader.read(1)
    writer.write(NOISE)
    await writer.drain()
    await reader.read()


async def garbage_body(reader, writer):
    """A well-formed frame whose body makes no sense."""
    async for _, _, correlation in requests(reader):
        writer.write(frame(correlation, b'\x00\x00' + b'\xff' * 200))


async def negative(reader, writer):
    """A frame of negative length."""
    await reader.read(1)
    writer.write(struct.pack('>i', -2) + NOISE)
    await writer.drain()
    await reader.read()


async def endless(reader, writer):
    """A frame that announces 2 GiB, and bytes without end."""
    await reader.read(1)
    writer.write(struct.pack('>i', 0x7fffffff))
    while True:
        writer.write(NOISE * 16)
        await writer.drain()


async def endless_legal(reader, writer):
    """A frame of a size that might be legal, sent without ever being finished: 60 MiB of 64."""
    async for _, _, correlation in requests(reader):
        writer.write(struct.pack('>ii', 64 << 20, correlation))
        for _ in range(60 * 16):
            writer.write(NOISE * 16)
            await writer.drain()
        await reader.read()


async def silent(reader, writer):
    """Reads everything, says nothing."""
    while await reader.read(65536):
        pass


async def half(reader, writer):
    """Half an answer, then nothing."""
    async for _, version, correlation in requests(reader):
        answer = frame(correlation, api_versions(version, APIS))
        writer.write(answer[:len(answer) // 2])


async def wrong_correlation(reader, writer):
    """Answers to something that nobody asked."""
    async for _, version, correlation in requests(reader):
        writer.write(frame(correlation + 77, api_versions(version, APIS)))


async def too_old(reader, writer):
    """Kafka 0.10: no record batches, so Produce ends at version 2."""
    async for _, version, correlation in requests(reader):
        writer.write(frame(correlation, api_versions(min(version, 0), [(0, 0, 2), (3, 0, 2), (18, 0, 0)])
                     if version == 0 else struct.pack('>hi', 35, 0)))


async def mute_after_versions(reader, writer):
    """Tells its versions, then answers nothing."""
    async for api, version, correlation in requests(reader):
        if api == 18:
            writer.write(frame(correlation, api_versions(version, APIS)))


async def closes_after_versions(reader, writer):
    """Tells its versions and closes on the next request."""
    async for api, version, correlation in requests(reader):
        if api != 18:
            return
        writer.write(frame(correlation, api_versions(version, APIS)))


BROKERS = [http, closes, closes_on_request, garbage, garbage_body, negative, endless, endless_legal,
           silent, half, wrong_correlation, too_old, mute_after_versions, closes_after_versions]


def served(broker):
    async def serve(reader, writer):
        try:
            await broker(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
    return serve


async def main(names):
    brokers = {broker.__name__: broker for broker in BROKERS}
    servers = []
    for name in names:
        server = await asyncio.start_server(served(brokers[name]), '127.0.0.1', 0)
        servers.append(server)
        print(name, server.sockets[0].getsockname()[1])
    print(flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    # Connections may still be in a loop: leave without waiting for them.
    os._exit(0)


if __name__ == '__main__':
    asyncio.run(main(sys.argv[1:] or [broker.__name__ for broker in BROKERS]))
