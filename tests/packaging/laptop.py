"""A language model's server that knows one sentence, and writes down with which key it was asked. Needs only Python's core."""

import socket
import sys

ANSWER = 'data: {"choices":[{"delta":{"content":"It is in the blue box."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    asked, _ = server.accept()
    with asked, asked.makefile("rb") as lines:
        first = lines.readline().decode()
        length, key = 0, "none"
        while (line := lines.readline().decode().strip()):
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                length = int(value)
            if name.lower() == "authorization":
                key = value.strip()
        lines.read(length)
        print(first.split()[1] if first else "nothing", key, flush=True)
        status, body = ("200 OK", ANSWER) if first.startswith("POST") else ("404 Not Found", "")
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        try:
            asked.sendall((head + body).encode())
        except OSError:
            continue
