"""Stands for the child process of a search: dies, refuses, hangs or answers, by how many lanes it is asked for."""

import json
import sys
import time

for line in sys.stdin:
    if line.strip() == "time":
        print(0.25, flush=True)
        continue
    schedule = json.loads(line)["schedule"]
    if schedule == "UPCAST(0, 2)":
        sys.exit(3)
    if schedule == "UPCAST(0, 8)":
        time.sleep(60)
    print("failed KernelError: refused" if schedule == "UPCAST(0, 4)" else "built", flush=True)
