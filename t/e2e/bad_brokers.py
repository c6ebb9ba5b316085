#!/usr/bin/env python3
"""What t/bad_brokers.t cannot see: memory and CPU stay bounded however a broker misbehaves, and the cluster
recovers without reload when a real broker comes in its place."""
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

from harness import ROOT, Load, Nginx, check, eventually, finish, note, rss

KAFKA = int(os.environ['TEST_NGINX_KAFKA_PORT'])
TIMES = 'delivery_timeout 1s; request_timeout 500ms; connect_timeout 500ms; reconnect_backoff 10ms 100ms;'


def cpu(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def misbehaving():
    fake = subprocess.Popen([sys.executable, ROOT / 't/tools/fake_broker.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    brokers = {}
    while line := fake.stdout.readline().split():
        brokers[line[0]] = int(line[1])
    for name, port in brokers.items():
        # No buffer of ours may reach this: what the broker sends must not be kept.
        nginx = Nginx(f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{port}; {TIMES} buffer_size 2m; }}',
                      'location /t { kafka_pass main; kafka_topic t1; }')
        with nginx:
            worker = nginx.workers()[0]
            before, burnt = rss(worker), cpu(worker)
            with Load(nginx.port, '/t', 2, rate=20) as load:
                peak, end = 0, time.monotonic() + 4
                while time.monotonic() < end:
                    peak = max(peak, rss(worker))
                    time.sleep(0.02)
            grown, seconds = (peak - before) >> 20, cpu(worker) - burnt
            note(f'{name}: +{grown} MB, {seconds:.2f} s of CPU in 4 s, {dict(load.by_status())}')
            # Before a peer has shown that it is a broker, no frame of more than 256 KiB is gathered.
            check(f'{name}: memory is bounded', grown < 6, f'{grown} MB')
            check(f'{name}: no spinning', seconds < (3 if name.startswith('endless') else 1), f'{seconds:.2f} s')
            check(f'{name}: 503 or 504', set(load.by_status()) <= {503, 504}, load.by_status())
            lines = sum('[error]' in line or '[warn]' in line for line in nginx.log().splitlines())
            check(f'{name}: the log is not flooded', 1 <= lines < 200, f'{lines} lines')
            nginx.stop()
            nginx.healthy(name)
    fake.stdin.close()
    fake.wait(5)


def relay(listener, target):
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    while True:
        client, _ = listener.accept()
        server = socket.create_connection(('127.0.0.1', target))
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


def recovery():
    """A web server on the port, later a broker."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('127.0.0.1', 0))
    listener.listen()
    wrong = threading.Event()

    def web_server():
        listener.settimeout(0.1)
        while not wrong.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            client.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
            client.close()

    thread = threading.Thread(target=web_server)
    thread.start()
    nginx = Nginx(f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{listener.getsockname()[1]}; {TIMES} }}',
                  'location /t { kafka_pass main; kafka_topic t1; }')
    with nginx:
        check('a web server on the port: 503', nginx.post('/t', b'x')[0] == 503)
        wrong.set()
        thread.join()
        listener.settimeout(None)
        threading.Thread(target=relay, args=(listener, KAFKA), daemon=True).start()
        begin = time.monotonic()
        check('a broker in its place: 200 without reload', eventually(lambda: nginx.post('/t', b'x')[0] == 200, 10, 0.1))
        check('soon', time.monotonic() - begin < 5, f'{time.monotonic() - begin:.1f} s')
        nginx.stop()
        nginx.healthy('recovery')


misbehaving()
recovery()
finish()
