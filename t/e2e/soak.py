#!/usr/bin/env python3
"""soak.py [SECONDS]: wrk with 64 connections and a unique id in every body.

Every 2xx has its record exactly once, and at most 64 further ids are there (answers that wrk no longer
read); memory, threads and connections of the worker stay flat."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import time

from harness import Log, Nginx, check, connections_to, finish, note, rss

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get('SOAK_SECONDS') or 60)
KAFKA = int(os.environ['TEST_NGINX_KAFKA_PORT'])
CONNECTIONS = 64
TOPIC = 'soak'

LUA = '''
local threads = 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
function init() n = 0; prefix = "%s" .. id .. "-" end
function request() n = n + 1; return wrk.format("POST", nil, nil, prefix .. n) end
'''


def soak(path, label):
    prefix = f'{label}-{os.getpid()}-'
    nginx = Nginx(
        f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{KAFKA}; }}',
        f'''
        location /sync {{ kafka_pass main; kafka_topic {TOPIC}; }}
        location /async {{ kafka_pass main; kafka_topic {TOPIC}; kafka_async on; }}
        ''')
    with nginx:
        check(f'{label}: it works', nginx.post('/sync', b'first')[0] == 200)
        worker = nginx.workers()[0]
        script = nginx.dir / 'ids.lua'
        script.write_text(LUA % prefix)
        wrk = subprocess.Popen(['wrk', '-t2', f'-c{CONNECTIONS}', f'-d{SECONDS}s', '--timeout', '30s', '-s', str(script),
                                f'http://127.0.0.1:{nginx.port}{path}'], stdout=subprocess.PIPE, text=True)
        threads, brokers, early = set(), set(), None
        begin = time.monotonic()
        while wrk.poll() is None:
            threads.add(int(re.search(r'^Threads:\s+(\d+)', pathlib.Path(f'/proc/{worker}/status').read_text(), re.M)[1]))
            brokers.add(connections_to(worker, KAFKA))
            if early is None and time.monotonic() - begin > min(10, SECONDS / 3):
                early = rss(worker)
            late = rss(worker)
            time.sleep(0.5)
        output = wrk.communicate()[0]
        total = int(re.search(r'(\d+) requests in', output)[1])
        refused = int(m[1]) if (m := re.search(r'Non-2xx or 3xx responses: (\d+)', output)) else 0
        note(f'{label}: {total} requests in {SECONDS} s, {total / SECONDS:.0f}/s; RSS {early // 1024} kB at first, {late // 1024} kB at the end')
        check(f'{label}: wrk sees no error', 'Socket errors' not in output and not refused, output)
        check(f'{label}: RSS grows by at most 2 MB', late - early <= 2 << 20, f'{(late - early) // 1024} kB')
        check(f'{label}: one thread', threads == {1}, threads)
        check(f'{label}: at most two connections to the broker', max(brokers) <= 2 and max(brokers) >= 1, brokers)
        check(f'{label}: the worker is the same', nginx.workers() == [worker])
        nginx.stop()
        nginx.healthy(label)
    mine = [v for v in Log(KAFKA).read(TOPIC) if v.startswith(prefix.encode())]
    counted = collections.Counter(mine)
    doubled = [one for one, times in counted.items() if times > 1]
    check(f'{label}: no id twice', not doubled, doubled[:5])
    check(f'{label}: every 2xx and at most {CONNECTIONS} more', total - refused <= len(counted) <= total - refused + CONNECTIONS,
          f'{len(counted)} ids for {total - refused} answers')
    # The ids of a wrk thread count up: whatever is missing can only be what was in flight at the end.
    by_thread = collections.defaultdict(set)
    for one in counted:
        thread, serial = one.rsplit(b'-', 1)
        by_thread[thread].add(int(serial))
    for thread, serials in sorted(by_thread.items()):
        last = max(serials)
        # wrk asks the script for one request that it does not send, to see whether it works.
        holes = [n for n in range(2, last - 4 * CONNECTIONS) if n not in serials]
        check(f'{label}: no hole among the ids of {thread.decode()}', not holes, holes[:5])


soak('/sync', 'sync')
if '--async' in sys.argv:
    soak('/async', 'async')
finish()
