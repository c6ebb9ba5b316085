#!/usr/bin/env python3
"""While a cluster is frozen or blackholed, other locations of the same worker keep their p99.

Measured as ratios on one worker: p99 with the load on the broken cluster, against p99 with the same load
on a location that answers at once. A worker that blocks would stand still for whole timeouts."""
import http.client
import os
import socket
import time

from harness import Kafka, Load, Nginx, check, finish, free_port, note, percentile

KAFKA = int(os.environ['TEST_NGINX_KAFKA_PORT'])
REQUESTS = 1500


def latencies(nginx, path, body=None):
    connection = http.client.HTTPConnection('127.0.0.1', nginx.port, timeout=30)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(REQUESTS):
        begin = time.monotonic()
        connection.request('POST' if body else 'GET', path, body)
        answer = connection.getresponse()
        answer.read()
        times.append(time.monotonic() - begin)
        if answer.status != 200:
            check(f'{path} answers 200', False, answer.status)
            break
    connection.close()
    return times


def measure(label, nginx, load_path):
    with Load(nginx.port, load_path, connections=8, rate=400) as load:
        time.sleep(0.5)
        p99 = {path: percentile(latencies(nginx, path, body), 0.99) for path, body in (('/plain', None), ('/good', b'x'))}
    return p99, load


def compare(label, nginx, base, path):
    p99, load = measure(label, nginx, path)
    for location in ('/plain', '/good'):
        ratio = p99[location] / base[location]
        note(f'{label}: p99 of {location} {p99[location] * 1000:.2f} ms, ratio {ratio:.2f}')
        # Other work on the machine moves a p99 of half a millisecond by itself; a stall would be 50 times that.
        check(f'{label}: {location} keeps its p99', ratio < 5 or p99[location] < 0.02, f'ratio {ratio:.1f}')
    return load


def blackhole():
    """A port whose accept queue is full: SYNs are dropped, as by a firewall."""
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen(0)
    clients = []
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(listener.getsockname())
        clients.append(s)
    return listener, clients


hole, _clients = blackhole()
with Kafka() as frozen:
    frozen.create_topics('t1')
    times = 'delivery_timeout 3s; request_timeout 1500ms; connect_timeout 1s;'
    nginx = Nginx(f'''
    kafka_cluster good {{ bootstrap_servers 127.0.0.1:{KAFKA}; }}
    kafka_cluster frozen {{ bootstrap_servers 127.0.0.1:{frozen.port}; {times} }}
    kafka_cluster hole {{ bootstrap_servers 127.0.0.1:{hole.getsockname()[1]}; {times} }}
    kafka_cluster refused {{ bootstrap_servers 127.0.0.1:{free_port()}; {times} }}
    kafka_cluster nowhere {{ bootstrap_servers no-such-host.invalid:9092; {times} }}
    ''', '''
        location /good { kafka_pass good; kafka_topic t1; }
        location /frozen { kafka_pass frozen; kafka_topic t1; }
        location /frozen-async { kafka_pass frozen; kafka_topic t1; kafka_async on; }
        location /hole { kafka_pass hole; kafka_topic t1; }
        location /refused { kafka_pass refused; kafka_topic t1; }
        location /nowhere { kafka_pass nowhere; kafka_topic t1; }
    ''')
    with nginx:
        check('the good cluster works', nginx.post('/good', b'x')[0] == 200)
        check('the other works before it is frozen', nginx.post('/frozen', b'x')[0] == 200)
        base, _ = measure('base', nginx, '/plain')
        note(f'base: p99 of /plain {base["/plain"] * 1000:.2f} ms, of /good {base["/good"] * 1000:.2f} ms')
        frozen.freeze()
        load = compare('frozen', nginx, base, '/frozen')
        check('frozen: only 503 and 504', set(load.by_status()) <= {503, 504, None}, load.by_status())
        load = compare('frozen, asynchronous', nginx, base, '/frozen-async')
        check('frozen, asynchronous: queued or full', set(load.by_status()) <= {202, 503}, load.by_status())
        for label in ('hole', 'refused', 'nowhere'):
            load = compare(label, nginx, base, f'/{label}')
            check(f'{label}: only 503', set(load.by_status()) <= {503}, load.by_status())
        frozen.thaw()
        nginx.stop()
        nginx.healthy('isolation')
finish()
