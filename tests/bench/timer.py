"""A process that times the layer of the shape it is asked for: bench_ours, or a peer."""
import os
import subprocess
import sys


class Timer:
    def __init__(self, command):
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=os.environ | threads)
        self.version = self.line()

    def line(self):
        text = self.process.stdout.readline().strip()
        if not text:
            sys.exit(f"{' '.join(self.process.args)}: ended early")
        return text

    def seconds(self, length, weights, least, *threads):
        """(seconds of one run, name of what ran); processor seconds unless threads are given."""
        print(length, int(weights), least, *threads, file=self.process.stdin, flush=True)
        seconds, name = self.line().split(" ", 1)
        return float(seconds), name

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
