# SPDX-License-Identifier: Apache-2.0
"""Placement problems whose optimum is known (after Davidovic and Crainic): tasks fill the devices without a gap up to T, edges go
forward in that schedule, across devices only where the copy fits; so T is the least makespan. Bytes are drawn by task; each device
holds 1.05 times the most that one has in the planted plan. python3 planted.py SEED DEVICES TASKS EDGES_PER_TASK > problem.json"""
import json
import random
import sys


def planted(seed, devices, n, edges):
    """The problem in sennit's own form, and T."""
    draw = random.Random(seed)
    total, tasks = n // devices * 100, []
    for device in range(devices):
        many, left, at = n // devices + (device < n % devices), n // devices * 100, 0
        for i in range(many):
            mean = left // (many - i)
            ns = left if i + 1 == many else draw.randint(mean - mean // 2, mean + mean // 2)
            tasks.append((at, device, at + ns))
            at, left = at + ns, left - ns
    tasks.sort()
    copy = [draw.randint(1, 200) for _ in tasks]
    size = [draw.randint(1, 1000) for _ in tasks]
    held = [sum(size[t] for t in range(n) if tasks[t][1] == d) for d in range(devices)]
    readers = [set() for _ in tasks]
    for _ in range(n * edges):
        u = draw.randrange(n)
        for _ in range(20):
            v = u + 1 + draw.randint(0, devices * 20)
            if v < n and tasks[v][0] - tasks[u][2] >= (0 if tasks[u][1] == tasks[v][1] else copy[u]):
                readers[u].add(v)
                break
    problem = {"format": "sennit-placement", "version": 1, "objective": "makespan", "unit": "units", "copies": "beside",
               "devices": [{"name": f"d{d}", "memory": max(held) * 105 // 100} for d in range(devices)],
               "classes": [{"id": t, "bytes": size[t]} for t in range(n)],
               "tasks": [{"id": t, "class": t, "time": tasks[t][2] - tasks[t][0]} for t in range(n)],
               "values": [{"from": t, "copy": copy[t], "read_by": sorted(readers[t])} for t in range(n) if readers[t]],
               "orders": []}
    return problem, total


if __name__ == "__main__":
    json.dump(planted(*map(int, sys.argv[1:5]))[0], sys.stdout)
