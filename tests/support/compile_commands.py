#!/usr/bin/env python3
"""Prints compile_commands.json: compile_commands.py "COMPILER AND FLAGS" FILE..."""
import json
import os
import shlex
import sys

command = shlex.split(sys.argv[1])
json.dump([{"directory": os.getcwd(), "file": file, "arguments": [*command, "-c", file]} for file in sys.argv[2:]],
          sys.stdout, indent=1)
