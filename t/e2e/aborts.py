#!/usr/bin/env python3
"""Each way in which a client can leave while its answer is pending (reference: nginx's upstream module).

With kafka_ignore_client_abort on the record is produced all the same; off drops it while it is unsent.
The broker is frozen meanwhile, so that the record cannot have been sent."""
import socket
import struct
import subprocess
import time

from harness import Kafka, Log, Nginx, check, eventually, finish

# The delivery timeout outlasts every freeze below.
HTTP = '''
    kafka_cluster main {{ bootstrap_servers 127.0.0.1:{port}; delivery_timeout 20s; request_timeout 10s; }}
    # Its connections are opened while the broker is frozen: nothing of it can be sent.
    kafka_cluster cold {{ bootstrap_servers 127.0.0.1:{port}; delivery_timeout 20s; request_timeout 10s; }}
'''
SERVER = '''
        location /warm-on { kafka_pass main; kafka_topic t1; kafka_ignore_client_abort on; }
        location /on { kafka_pass cold; kafka_topic t1; kafka_ignore_client_abort on; }
        location /off { kafka_pass cold; kafka_topic t1; kafka_ignore_client_abort off; }
        location /off-two { kafka_pass cold; kafka_topic t1,t2; kafka_ignore_client_abort off; }
        location /async { kafka_pass cold; kafka_topic t1; kafka_async on; kafka_ignore_client_abort off; }
'''


def request(path, body):
    return b'POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s' % (path.encode(), len(body), body)


def connect(port):
    s = socket.create_connection(('127.0.0.1', port))
    s.settimeout(15)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def fin_with_request(s, data):
    """Data and FIN in one go: nginx sees both in one event."""
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)


def fin_later(s, data):
    s.sendall(data)
    time.sleep(0.2)
    s.shutdown(socket.SHUT_WR)


def close_at_once(s, data):
    s.sendall(data)
    s.close()


def close_later(s, data):
    s.sendall(data)
    time.sleep(0.2)
    s.close()


def reset(s, data):
    s.sendall(data)
    time.sleep(0.1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()


def reset_at_once(s, data):
    s.sendall(data)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()


def close_in_the_body(s, data):
    s.sendall(data[:-1])
    time.sleep(0.1)
    s.close()


WAYS = [fin_with_request, fin_later, close_at_once, close_later, reset, reset_at_once]


def ways(kafka, log):
    nginx = Nginx(HTTP.format(port=kafka.port), SERVER)
    with nginx:
        check('the broker works', nginx.post('/warm-on', b'warm')[0] == 200)
        kafka.freeze()
        open_sockets = []
        for path in ('/on', '/off', '/async', '/warm-on', '/off-two'):
            for way in WAYS:
                s = connect(nginx.port)
                way(s, request(path, f'{path} {way.__name__}'.encode()))
                open_sockets.append(s)
        s = connect(nginx.port)
        close_in_the_body(s, request('/on', b'/on close_in_the_body'))
        # Somebody who stays must get an answer, whoever leaves around him.
        stays = connect(nginx.port)
        stays.sendall(request('/off', b'/off stays'))
        time.sleep(1)
        kafka.thaw()
        check('one who stays is answered', b' 200 ' in stays.recv(4096)[:15])
        # Requests that were aborted are over; those that go on are answered or done.
        wanted = {f'{path} {way.__name__}'.encode() for path in ('/on', '/async', '/warm-on') for way in WAYS}
        there = eventually(lambda: (lambda c: c if wanted <= set(c) else None)(log.count('t1')), 20, 0.3) or log.count('t1')
        time.sleep(0.5)
        there, second = log.count('t1'), log.count('t2')
        for path in ('/on', '/async', '/warm-on'):
            for way in WAYS:
                times = there[f'{path} {way.__name__}'.encode()]
                check(f'{path}, {way.__name__}: produced once', times == 1, f'{times} times')
        for way in WAYS:
            times = there[f'/off {way.__name__}'.encode()]
            check(f'/off, {way.__name__}: dropped', times == 0, f'{times} times')
            times = there[f'/off-two {way.__name__}'.encode()] + second[f'/off-two {way.__name__}'.encode()]
            check(f'/off with two topics, {way.__name__}: dropped', times == 0, f'{times} times')
        check('closed within the body: nothing', there[b'/on close_in_the_body'] == 0)
        check('the worker lives and works', nginx.post('/warm-on', b'after')[0] == 200)
        for s in open_sockets:
            s.close()
        nginx.stop()
        nginx.healthy('aborts')


def half_close_is_answered(kafka):
    """With kafka_ignore_client_abort on, a client that only closes its own side gets its answer."""
    with Nginx(HTTP.format(port=kafka.port), SERVER) as nginx:
        nginx.post('/warm-on', b'warm')
        for way in (fin_with_request, fin_later):
            kafka.freeze()
            s = connect(nginx.port)
            way(s, request('/warm-on', b'half ' + way.__name__.encode()))
            time.sleep(0.2)
            kafka.thaw()
            try:
                answer = s.recv(4096)
            except TimeoutError:
                answer = b'timed out'
            check(f'{way.__name__}, on: the half-closed client is answered', b' 200 ' in answer[:15], answer[:60])
            s.close()
        nginx.stop()
        nginx.healthy('half close')


def over_http2(kafka, log):
    """A stream that is reset, and a connection that is closed with streams in it."""
    with Nginx(HTTP.format(port=kafka.port), SERVER, http2=True) as nginx:
        kafka.freeze()
        (nginx.dir / 'body').write_bytes(b'x' * 20_000)
        clients = []
        for path in ('/on', '/off', '/async'):
            clients.append(subprocess.Popen(
                ['curl', '-s', '--http2-prior-knowledge', '--max-time', '0.5', '-d', f'h2 {path}',
                 f'http://127.0.0.1:{nginx.port}{path}'], stdout=subprocess.DEVNULL))
        # h2load leaves with all its streams open when its time is over.
        load = subprocess.Popen(['timeout', '1', 'h2load', '-n', '100', '-c', '2', '-m', '20', '-d', str(nginx.dir / 'body'),
                                 f'http://127.0.0.1:{nginx.port}/off'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for client in clients + [load]:
            client.wait(10)
        time.sleep(0.3)
        kafka.thaw()
        there = eventually(lambda: (lambda c: c if c[b'h2 /on'] and c[b'h2 /async'] else None)(log.count('t1')), 15, 0.3) or log.count('t1')
        for path, times in (('/on', 1), ('/off', 0), ('/async', 1)):
            check(f'HTTP/2 {path}: {times} records', there[b'h2 ' + path.encode()] == times, there[b'h2 ' + path.encode()])
        nginx.stop()
        nginx.healthy('HTTP/2 aborts')


def many(kafka, log):
    """Masses of aborts at every stage, with a working broker."""
    with Nginx(HTTP.format(port=kafka.port), SERVER) as nginx:
        end, n = time.monotonic() + 5, 0
        while time.monotonic() < end:
            group = [connect(nginx.port) for _ in range(40)]
            for i, s in enumerate(group):
                n += 1
                s.sendall(request(('/on', '/off', '/async', '/off-two')[i % 4], b'mass-%d' % n))
                if i % 3 == 0:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                if i % 5 == 0:
                    s.shutdown(socket.SHUT_WR)
            for s in group:
                s.close()
        check('the worker survives masses of aborts', nginx.post('/on', b'survivor')[0] == 200)
        doubled = [k for k, v in log.count('t1').items() if v > 1 and k.startswith(b'mass-')]
        check(f'none of {n} aborted records twice', not doubled, doubled[:5])
        nginx.stop()
        nginx.healthy('masses of aborts')


with Kafka() as kafka:
    kafka.create_topics('t1', 't2')
    log = Log(kafka.port)
    ways(kafka, log)
    half_close_is_answered(kafka)
    over_http2(kafka, log)
    many(kafka, log)
finish()
