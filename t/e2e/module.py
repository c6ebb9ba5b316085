#!/usr/bin/env python3
"""The module as a file and as a part of nginx: what it links, what it does before there are workers."""
import os
import re
import subprocess

from harness import BINARY, MODULE, Nginx, check, connections_to, finish

KAFKA = int(os.environ['TEST_NGINX_KAFKA_PORT'])


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


# One .so without foreign libraries: it loads wherever nginx runs.
needed = re.findall(r'NEEDED.*\[(.*)\]', output('readelf', '-d', MODULE))
check('links libc and its companions only', set(needed) <= {'libc.so.6', 'libgcc_s.so.1', 'libm.so.6', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}, needed)
exported = {line.split()[-1] for line in output('nm', '-D', '--defined-only', MODULE).splitlines()}
check('exports the module tables only', {'ngx_modules', 'ngx_module_names', 'ngx_module_order'} <= exported and len(exported) < 10, exported)

# nginx -t is no reason to talk to anybody, and no name server can prevent a start.
nginx = Nginx(f'kafka_cluster main {{ bootstrap_servers no-such-host.invalid:9092 127.0.0.1:{KAFKA}; }}',
              'location /t { kafka_pass main; kafka_topic t1; }', workers=2)
trace = subprocess.run(['timeout', '5', BINARY, '-t', '-e', str(nginx.dir / 'logs/error.log'), '-p', f'{nginx.dir}/',
                        '-c', str(nginx.dir / 'conf/nginx.conf')], capture_output=True, text=True)
check('nginx -t passes, whatever the brokers', trace.returncode == 0, trace.stderr)

with nginx:
    for _ in range(20):
        check('answers', nginx.post('/t', b'x')[0] == 200)
    # What a master opened before fork would be shared by its workers.
    check('the master has no connection to Kafka', connections_to(nginx.process.pid, KAFKA) == 0)
    for worker in nginx.workers():
        check('a worker has at most two', connections_to(worker, KAFKA) <= 2)
        status = open(f'/proc/{worker}/status').read()
        check('a worker has one thread', 'Threads:\t1\n' in status)
    nginx.stop()
    nginx.healthy()
finish()
