#!/usr/bin/env python3
"""Connections to the broker: few, shared, closed when idle by either side without anybody noticing."""
import http.client
import time

from harness import Kafka, Load, Nginx, check, connections_to, eventually, finish, note, rss

SERVER = '''
        location /t { kafka_pass main; kafka_topic t1; }
        location /idle { kafka_pass idle; kafka_topic t1; }
        location /full { kafka_pass small; kafka_topic t2; kafka_async on; }
        location /sync { kafka_pass small; kafka_topic t2; }
'''


def complaints(nginx):
    return [line for line in nginx.log().splitlines() if '[error]' in line or '[warn]' in line]


def closed_by_the_broker(nginx):
    """B8: connections.max.idle.ms is over: a quiet reconnect, no failed request."""
    for pause in (0, 3, 4):
        time.sleep(pause)
        check(f'after {pause} s of idleness: 200', nginx.post('/t', b'x')[0] == 200)
    check('nothing in the log worth an error', not complaints(nginx), complaints(nginx)[:3])


def closed_by_us(nginx, port):
    """idle_timeout closes what is not used."""
    check('first: 200', nginx.post('/idle', b'x')[0] == 200)
    worker = nginx.workers()[0]
    check('after idle_timeout: no connection', eventually(lambda: connections_to(worker, port) == 0, 6))
    check('then again: 200', nginx.post('/idle', b'x')[0] == 200)


def many_short_ones(nginx, port):
    """B27: 5000 HTTP connections share what connections to Kafka there are."""
    worker = nginx.workers()[0]

    def some(n):
        for _ in range(n):
            connection = http.client.HTTPConnection('127.0.0.1', nginx.port, timeout=10)
            connection.request('POST', '/t', b'x', {'Connection': 'close'})
            if connection.getresponse().status != 200:
                return False
            connection.close()
        return True

    check('short connections', some(1000))
    before, seen = rss(worker), set()
    for _ in range(8):
        check('more of them', some(500))
        seen.add(connections_to(worker, port))
    note(f'connections to Kafka: {seen}, RSS +{(rss(worker) - before) >> 10} kB')
    check('at most two connections to Kafka', max(seen) <= 2, seen)
    check('memory is flat', rss(worker) - before < 1 << 20, rss(worker) - before)


def a_full_buffer(nginx, kafka):
    """B24: full is 503 at once, and over when the broker is back."""
    check('works', nginx.post('/sync', b'warm')[0] == 200)
    kafka.freeze()
    body = b'f' * 50_000
    answers = [nginx.post('/full', body)[0] for _ in range(40)]
    refused = answers.count(503)
    check('first queued, then 503', answers[0] == 202 and answers[-1] == 503 and set(answers) == {202, 503}, answers)
    check('about buffer_size is held', 10 <= answers.count(202) <= 21, answers.count(202))
    begin = time.monotonic()
    status, answer, headers = nginx.post('/full', body)
    check('503 at once, with Retry-After', status == 503 and time.monotonic() - begin < 0.5 and int(headers['Retry-After'] or 0) >= 1, (status, answer))
    kafka.thaw()
    check('room again', eventually(lambda: nginx.post('/full', body)[0] == 202, 10))
    begin = time.monotonic()
    with Load(nginx.port, '/sync', 4) as load:
        time.sleep(2)
    check('full speed again', set(load.by_status()) == {200} and len(load.results) > 200, (load.by_status(), refused))


with Kafka(settings=['connections.max.idle.ms=2000']) as kafka:
    kafka.create_topics('t1', 't2')
    servers = f'bootstrap_servers 127.0.0.1:{kafka.port};'
    nginx = Nginx(f'''
    kafka_cluster main {{ {servers} }}
    kafka_cluster idle {{ {servers} idle_timeout 1s; }}
    kafka_cluster small {{ {servers} buffer_size 1m; max_message_size 100k; }}
    ''', SERVER)
    with nginx:
        closed_by_the_broker(nginx)
        closed_by_us(nginx, kafka.port)
        many_short_ones(nginx, kafka.port)
        a_full_buffer(nginx, kafka)
        nginx.stop()
        nginx.healthy('connections')
finish()
