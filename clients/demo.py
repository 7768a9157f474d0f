#!/usr/bin/env python3
"""A daemon of our own shows what attention does: the textbook's four embeddings with a heat map of their weights, then
where the words of a sentence look in two small trained models.

    clients/demo.py --daemon build/attnd      starts it on a free port and stops it at the end
    clients/demo.py --url http://host:port    asks one that runs

Python's standard library only.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import urllib.request

import words

REQUEST = {
    "embeddings": [[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]],
    "projections": {
        "query": [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
        "key": [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.3, 0.2, 0.1]],
        "value": [[0.2, 0.4, 0.6], [0.8, 1.0, 1.2], [1.4, 1.6, 1.8]],
    },
    "precision": 6,
}
SHADES = " ░▒▓█"
READY_LINES = 100


def start(path):
    """A daemon on a free port and its URL, once its log says ready."""
    process = subprocess.Popen([path, "--listen", "127.0.0.1:0", "--log-format", "text"], stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        ready = re.search(r"event=ready .*listen=(\S+:\d+)", line)
        if ready:
            return process, f"http://{ready[1]}"
        if len(lines) > READY_LINES:
            break
    process.terminate()
    sys.exit("attnd did not become ready:\n" + "".join(lines))


def ask(url, body):
    """(reply, its headers) of POST /v1/attention."""
    request = urllib.request.Request(url + "/v1/attention", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply), reply.headers


def cell(weight, largest, colour):
    """One cell of the heat map, six columns wide."""
    text = f"{weight:.2f}".center(6)
    share = weight / largest if largest > 0 else 0.0
    if not colour:
        return SHADES[min(len(SHADES) - 1, int(share * len(SHADES)))] + text
    level = int(share * 5)  # along the 6x6x6 colour cube from black through red to yellow
    background = 16 + 36 * min(5, level + 1) + 6 * max(0, level - 2)
    foreground = 16 if level >= 4 else 231
    return f"\033[48;5;{background}m\033[38;5;{foreground}m {text}\033[0m"


def heat_map(weights, colour):
    """Lines of a heat map of weights [queries, keys]."""
    largest = max(max(row) for row in weights)
    yield "          " + "".join(f"key {k}".center(7) for k in range(len(weights[0])))
    for number, row in enumerate(weights):
        yield f"  query {number} " + "".join(cell(weight, largest, colour) for weight in row)


def rows(matrix):
    return ["  [" + "  ".join(f"{x:.6f}" for x in row) + "]" for row in matrix]


def show(url, colour):
    print(f"POST {url}/v1/attention")
    print("  " + json.dumps(REQUEST, separators=(",", ":")).replace('"projections"', '\n   "projections"').replace('"precision"', '\n   "precision"'))
    reply, headers = ask(url, REQUEST)
    print("\nReply")
    print("  " + json.dumps(reply, separators=(",", ":")).replace('"weights"', '\n   "weights"').replace('"shape"', '\n   "shape"'))
    print(f"  Server-Timing: {headers.get('Server-Timing')}")
    print("\nContext vectors: what each embedding becomes")
    print("\n".join(rows(reply["context"])))
    print("\nAttention weights: how much each query (row) takes from each key (column)")
    print("\n".join(heat_map(reply["weights"][0], colour)))
    print()
    print("\n".join(words.heads_from_last_word(url, colour)))
    print()
    print("\n".join(words.negation(url, colour)))


def wants_colour():
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and "NO_COLOR" not in os.environ


def main():
    parser = argparse.ArgumentParser(description="What attention does, in pictures.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--daemon", help="path of the program to start")
    where.add_argument("--url", help="a daemon that runs")
    parser.add_argument("--colour", choices=["auto", "always", "never"], default="auto")
    arguments = parser.parse_args()
    colour = arguments.colour == "always" or arguments.colour == "auto" and wants_colour()
    if arguments.url:
        show(arguments.url.rstrip("/"), colour)
        return 0
    process, url = start(arguments.daemon)
    try:
        show(url, colour)
    finally:
        process.terminate()
        rest = process.communicate(timeout=30)[1]
    if process.returncode != 0:
        sys.exit(f"attnd ended with status {process.returncode}:\n{rest}")
    print("\nThe daemon has stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
