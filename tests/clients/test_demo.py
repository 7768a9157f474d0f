"""What a newcomer runs first: the demonstration and the lines that `make run` prints."""
import json
import re
import shlex
import signal
import subprocess
import sys

import demo
import pytest
from daemon import BINARY, ROOT, SLOW, Daemon

WEIGHTS = [[.176179, .268531, .207091, .348199], [.116131, .269791, .160458, .453621],
           [.087223, .262751, .133715, .516311], [.151182, .270862, .188270, .389686]]


def test_the_demonstration_shows_the_textbook_answer_and_stops_its_daemon():
    done = subprocess.run([sys.executable, "clients/demo.py", "--daemon", BINARY], cwd=ROOT, capture_output=True, text=True,
                          timeout=60 * SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[1.374390  1.739160  2.103920]" in done.stdout
    assert '"I don\'t speak French" becomes "Je ne parle pas français"' in done.stdout
    assert 'looks from "tired" in "Alice was beginning to get very tired"' in done.stdout
    shown = [[float(x) for x in re.findall(r"0\.\d\d", line)] for line in done.stdout.splitlines() if "  query " in line]
    assert shown == [[round(w, 2) for w in row] for row in WEIGHTS]
    assert done.stdout.rstrip().endswith("The daemon has stopped.")
    assert "\033" not in done.stdout


def test_the_demonstration_can_ask_a_daemon_that_runs():
    with Daemon() as daemon:
        command = [sys.executable, "clients/demo.py", "--url", f"http://127.0.0.1:{daemon.port}", "--colour", "always"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60 * SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\033[48;5;" in done.stdout


def test_the_heat_map_is_lightest_where_the_weight_is_largest():
    lines = list(demo.heat_map([[0.0, 1.0]], False))
    assert lines[1].index("█") > lines[1].index("0.00")


def test_the_lines_that_run_prints_work_as_pasted():
    with Daemon("--models", ROOT / "config/models") as probe:  # a port that was free a moment ago
        port = probe.port
    runner = subprocess.Popen(["clients/run.sh", BINARY, f"127.0.0.1:{port}"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        pasted = []
        for line in runner.stdout:
            if line.startswith("  curl "):
                pasted.append(line)
            if line.startswith("Ctrl-C"):
                break
        assert len(pasted) == 3
        for line in pasted:
            done = subprocess.run([*shlex.split(line), "-s"], capture_output=True, text=True, timeout=60)
            reply = json.loads(done.stdout)
            if "text" in line:
                assert reply["token_strings"][0] == "Alice" and len(reply["weights"][0]["indices"]) == 4
                continue
            assert all(abs(sum(row) - 1) < 1e-3 for head in reply["weights"] for row in head), reply
    finally:
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(timeout=30 * SLOW) == 0


def near(found, printed):
    """Whether two replies are the same but for the last digits of their numbers."""
    if isinstance(found, dict):
        return set(found) == set(printed) and all(near(found[name], printed[name]) for name in found)
    if isinstance(found, list):
        return len(found) == len(printed) and all(near(a, b) for a, b in zip(found, printed))
    if isinstance(found, str):
        return found == printed
    return abs(found - printed) <= 0.01 * abs(printed)


@pytest.mark.parametrize("line,flags", [(0, ()), (1, ()), (2, ("--models", ROOT / "tests/models"))])
def test_the_readmes_lines_give_the_output_printed_below_them(line, flags):
    lines = re.findall(r"(?m)^\$ (curl .*)\n(\{.*\})$", (ROOT / "README.md").read_text())
    assert len(lines) == 3
    command, printed = lines[line]
    with Daemon(*flags) as daemon:
        done = subprocess.run([*shlex.split(command.replace(":8080", f":{daemon.port}")), "-s"], capture_output=True,
                              text=True, timeout=60)
    assert near(json.loads(done.stdout), json.loads(printed)), done.stdout
