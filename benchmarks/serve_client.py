"""Send requests to a server over many connections, from a process of their own.

    python -m benchmarks.serve_client PORT --connections 16 --seconds 5

Prints one JSON object: requests per second, and latencies by status. With --rate, requests start at
fixed times whether or not earlier ones were answered, as from users who do not wait for each other.
With --rude, some requests are malformed, some go to other routes than /embed, and some connections
are closed before the answer.
"""

import argparse
import asyncio
import json
import random
import time
from collections import defaultdict

import uvloop

from benchmarks.sentences import generate_sentences, take_tokens

# What rude clients also ask for, next to /embed.
OTHERS = [
    ("POST", "/v1/embeddings", {"input": "The bank of the river."}),
    ("POST", "/layers", {"inputs": "The bank.", "format": "raw"}),
    ("POST", "/tokenize", {"inputs": "The bank."}),
    ("POST", "/score", {"inputs": "The bank of the river."}),
    ("POST", "/fill", {"input": "The ___ of the river.", "top": 2}),
    ("POST", "/nearest", {"use": {"sentence": "A bank.", "token": 1}, "layer": 1}),
    ("POST", "/nearest", {"use": 10**9, "layer": 1}),
    ("POST", "/compare", {"use": {"sentence": "A bank.", "token": "bank"}, "other": 236}),
    ("POST", "/similarity", {"input": "A bank is not a bank."}),
    ("GET", "/uses?word=bank", None),
    ("GET", "/uses?limit=x", None),
    ("GET", "/map?word=watch&layer=1&method=tsne", None),
    ("GET", "/groups?word=light&layer=2", None),
    ("GET", "/words?prefix=b", None),
    ("GET", "/", None),
    ("GET", "/assets/page.js", None),
    ("GET", "/info", None),
]
MALFORMED = [
    b"",
    b"{",
    b"[" * 5000,
    b'{"inputs": NaN}',
    b'{"inputs": 1e999}',
    b'{"inputs": "\xff\xfe"}',
    b'{"inputs": [[[["deep"]]]]}',
    b'{"inputs": [' + b"1," * 20_000 + b"1]}",
    b'{"inputs": ""}',
    b'{"inputs": "a", "truncate": 3}',
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--words", type=int, help="send texts of this many words")
    parser.add_argument("--rude", action="store_true")
    arguments = parser.parse_args()
    # The client shares the cores with the server, so it should need little of them.
    print(json.dumps(uvloop.run(run(arguments))))


async def run(arguments: argparse.Namespace) -> dict[str, object]:
    client = Client(arguments)
    began = time.perf_counter()
    client.deadline = began + arguments.seconds
    if arguments.rate:
        await client.run_at_rate(arguments.rate)
    else:
        async with asyncio.TaskGroup() as group:
            for number in range(arguments.connections):
                group.create_task(client.run_connection(number))
    seconds = time.perf_counter() - began
    return {
        "requests_per_second": round(len(client.latencies["200"]) / seconds, 1),
        "by_status": {
            status: {
                "requests": len(latencies),
                "p50_ms": round(1000 * find_quantile(latencies, 0.5), 1),
                "p99_ms": round(1000 * find_quantile(latencies, 0.99), 1),
            }
            for status, latencies in sorted(client.latencies.items())
        },
    }


def find_quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Client:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.deadline = 0.0
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.random = random.Random(0)
        texts = take_tokens(generate_sentences(), num_tokens=20_000)
        if arguments.words:
            words = [word for text in texts for word in text]
            texts = [words[: arguments.words]]
        self.bodies = [json.dumps({"inputs": " ".join(text)}).encode() for text in texts]

    async def run_connection(self, number: int) -> None:
        """Send one request after another."""
        connection = None
        number *= 7
        while time.perf_counter() < self.deadline:
            number += 1
            try:
                if connection is None:
                    connection = await self.connect()
                connection = await self.send(connection, number)
            except OSError:
                self.latencies["broken"].append(0.0)
                connection = None
                await asyncio.sleep(0.05)
        if connection is not None:
            connection[1].close()

    async def run_at_rate(self, rate: float) -> None:
        """Start requests at fixed times, on idle connections or new ones."""
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def send_once(number: int) -> None:
            try:
                connection = idle.pop() if idle else await self.connect()
                idle.append(await self.send(connection, number))
            except OSError:
                self.latencies["broken"].append(0.0)

        began = time.perf_counter()
        number = 0
        async with asyncio.TaskGroup() as group:
            while time.perf_counter() < self.deadline:
                while number < (time.perf_counter() - began) * rate:
                    number += 1
                    group.create_task(send_once(number))
                await asyncio.sleep(0.005)
        for _, writer in idle:
            writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.arguments.port)

    async def send(
        self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], number: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Send a request and read its answer; return the connection if it can be used again."""
        reader, writer = connection
        body = self.bodies[number % len(self.bodies)]
        is_rude = self.arguments.rude and self.random.random() < 0.3
        if is_rude and self.random.random() < 0.5:
            body = self.random.choice(MALFORMED)
            is_rude = False
        method, path = "POST", "/embed"
        if self.arguments.rude and self.random.random() < 0.3:
            method, path, content = self.random.choice(OTHERS)
            body = b"" if content is None else json.dumps(content).encode()
        began = time.perf_counter()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
        )
        writer.write(body)
        if is_rude:
            await asyncio.sleep(self.random.random() * 0.05)
            writer.transport.abort()
            self.latencies["left"].append(0.0)
            return None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(
                line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line
            )
            await reader.readexactly(int(fields[b"content-length"]))
        except asyncio.IncompleteReadError:
            raise ConnectionResetError from None
        self.latencies[head.split(b" ", 2)[1].decode()].append(time.perf_counter() - began)
        return None if fields.get(b"connection") == b"close" else connection


if __name__ == "__main__":
    main()
