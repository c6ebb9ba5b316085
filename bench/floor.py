#!/usr/bin/env python3
"""floor.py [ROUNDS] [SECONDS]: what a location with kafka_pass costs, as a ratio to `return 200`.

Alternating rounds of wrk against one nginx with one worker; medians, spread in parentheses. CPU is the
worker's own accounting (/proc/PID/stat). Every 2xx is counted in Kafka's log afterwards, else the run is void.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 't/e2e'))
from harness import Kafka, Log, Nginx, eventually  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
BODY = '{"user":12345,"event":"page_view","path":"/products/987","referrer":"https://example.com/",'
BODY += '"pad":"' + 'x' * (256 - len(BODY) - 9) + '"}'

SCRIPT = f"""wrk.method = "POST"
wrk.body = '{BODY}'
wrk.headers["Content-Type"] = "application/json"
"""

CASES = [('return 200', '/floor', 64), ('async raw', '/async', 64), ('sync raw, 64 connections', '/sync', 64),
         ('sync raw, 256 connections', '/sync', 256)]


def cpu_ticks(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wrk(nginx, path, connections, script):
    worker = nginx.workers()[0]
    before = cpu_ticks(worker)
    output = subprocess.run(['wrk', '-t1', f'-c{connections}', f'-d{SECONDS}s', '--latency', '-s', str(script),
                             f'http://127.0.0.1:{nginx.port}{path}'], capture_output=True, text=True, check=True).stdout
    total = int(re.search(r'(\d+) requests in', output)[1])
    bad = int(m[1]) if (m := re.search(r'Non-2xx or 3xx responses: (\d+)', output)) else 0
    if bad:
        sys.exit(f'{path}: {bad} requests failed, the run is void\n{output}')
    micros = (cpu_ticks(worker) - before) / os.sysconf('SC_CLK_TCK') * 1e6 / total
    return total, total / SECONDS, micros, re.search(r'99%\s+(\S+)', output)[1]


def main():
    with Kafka() as kafka:
        kafka.create_topics('bench')
        nginx = Nginx(f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{kafka.port}; }}',
                      'location /floor { return 200 "ok"; }'
                      'location /sync { kafka_pass main; kafka_topic bench; }'
                      'location /async { kafka_pass main; kafka_topic bench; kafka_async on; }')
        with nginx:
            script = nginx.dir / 'bench.lua'
            script.write_text(SCRIPT)
            eventually(lambda: nginx.post('/sync', BODY.encode())[0] == 200, 20)
            samples, accepted = {name: [] for name, _, _ in CASES}, 1
            for _ in range(ROUNDS):
                for name, path, connections in CASES:
                    sample = wrk(nginx, path, connections, script)
                    samples[name].append(sample)
                    accepted += sample[0] if path != '/floor' else 0
            nginx.stop()
        written = len(Log(kafka.port).read('bench'))
    # wrk stops without reading its last answers.
    if not accepted <= written <= accepted + ROUNDS * sum(c for _, path, c in CASES if path != '/floor'):
        sys.exit(f'{accepted} answers with 2xx, {written} records in the log: the run is void')

    def median(name, index):
        return statistics.median(sample[index] for sample in samples[name])

    print(f'{ROUNDS} rounds of {SECONDS} s, one worker, 256 bytes; {accepted} answers, {written} records in the log\n')
    print('| case | requests/s | of return 200 | CPU per request | of return 200 | p99 |')
    print('|---|---|---|---|---|---|')
    for name, _, _ in CASES:
        rates = [sample[1] for sample in samples[name]]
        spread = (max(rates) - min(rates)) / median(name, 1)
        print(f'| {name} | {median(name, 1):.0f} (±{spread / 2:.0%}) | {median(name, 1) / median("return 200", 1):.2f}'
              f' | {median(name, 2):.1f} µs | {median(name, 2) / median("return 200", 2):.2f}'
              f' | {sorted(sample[3] for sample in samples[name])[len(rates) // 2]} |')


main()
