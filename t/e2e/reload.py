#!/usr/bin/env python3
"""What becomes of records when workers leave: HUP, QUIT and TERM, with the broker up, frozen and down."""
import os
import re
import signal
import socket
import time

from harness import Kafka, Load, Log, Nginx, check, eventually, finish, free_port, note, nothing_lost

HTTP = '''
    kafka_cluster main {{ bootstrap_servers 127.0.0.1:{port}; delivery_timeout {delivery}; request_timeout 1s; }}
'''
SERVER = '''
        location /t { kafka_pass main; kafka_topic t1; }
        location /async { kafka_pass main; kafka_topic t2; kafka_async on; }
'''
LOST = re.compile(r'.*: worker exits, (\d+) records? not delivered')


def lost(log):
    """The losses that the log counts."""
    return [int(m[1]) for line in log.splitlines() if (m := LOST.match(line))]


def reload_under_load(kafka, log):
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='10s'), SERVER, workers=2)
    with nginx:
        with Load(nginx.port, '/t', 8, prefix='hup-') as load, Load(nginx.port, '/async', 4, prefix='hup-a-', rate=400) as queued:
            for _ in range(8):
                time.sleep(1)
                nginx.reload()
            time.sleep(1)
        for one in (load, queued):
            note(one.path, {str(k): v for k, v in one.by_status().items()})
        # None: nginx closed an idle keepalive connection just when the request was under way.
        check('reload: only 200', set(load.by_status()) <= {200, None}, load.by_status())
        check('reload: only 202', set(queued.by_status()) <= {202, None}, queued.by_status())
        check('old workers leave', eventually(lambda: len(nginx.workers()) == 2, 20), nginx.workers())
        seconds = nginx.stop()
        check('with nothing to do QUIT is quick', seconds < 3, f'{seconds:.1f} s')
        nginx.healthy('reload')
        check('reload: no loss is logged', not lost(nginx.log()), lost(nginx.log()))
    nothing_lost('reload, synchronous', load, log.count('t1'))
    nothing_lost('reload, asynchronous', queued, log.count('t2'))


def quit_delivers(kafka, log):
    """QUIT with queued records and a waiting request, the broker frozen for a moment: both arrive."""
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='15s').replace('request_timeout 1s', 'request_timeout 7s'), SERVER)
    with nginx:
        nginx.post('/t', b'warm')
        kafka.freeze()
        for i in range(50):
            check_status = nginx.post('/async', b'quit-%d' % i)[0]
        waiting = socket.create_connection(('127.0.0.1', nginx.port))
        waiting.settimeout(20)
        waiting.sendall(b'POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nquit-wait')
        time.sleep(0.3)
        nginx.send(signal.SIGQUIT)
        time.sleep(1)
        check('QUIT waits for what is held', nginx.process.poll() is None and check_status == 202)
        kafka.thaw()
        check('the waiting request is answered', b' 200 ' in waiting.recv(4096)[:15])
        check('then it leaves', eventually(lambda: nginx.process.poll() is not None, 5))
        check('with 0', nginx.process.poll() == 0, nginx.process.poll())
        nginx.healthy('QUIT')
        check('QUIT: no loss is logged', not lost(nginx.log()), lost(nginx.log()))
    there = log.count('t2')
    check('all 50 queued records are there once', all(there[b'quit-%d' % i] == 1 for i in range(50)))
    check('and so is the waiting one', log.count('t1')[b'quit-wait'] == 1)


def leaving_with_the_broker_down(name, number, main, delivery, shortest, longest):
    nginx = Nginx(HTTP.format(port=free_port(), delivery=delivery), SERVER, main=main)
    with nginx:
        queued = sum(nginx.post('/async', b'lost')[0] == 202 for _ in range(20))
        check(f'{name}: queued', queued == 20, queued)
        seconds = nginx.stop(number, 30)
        note(f'{name}: left after {seconds:.2f} s')
        check(f'{name}: bounded', shortest <= seconds <= longest, f'{seconds:.2f} s')
        check(f'{name}: leaves with 0', nginx.process.returncode == 0, nginx.process.returncode)
        counted = lost(nginx.log())
        check(f'{name}: the loss is counted', sum(counted) == queued, (counted, nginx.log()[-1500:]))
        nginx.healthy(name)


def reload_with_the_broker_down():
    """The old worker leaves within delivery_timeout, the new one works meanwhile."""
    nginx = Nginx(HTTP.format(port=free_port(), delivery='3s'), SERVER)
    with nginx:
        old = nginx.workers()
        queued = sum(nginx.post('/async', b'lost')[0] == 202 for _ in range(10))
        begin = time.monotonic()
        nginx.reload()
        check('HUP: a new worker', eventually(lambda: set(nginx.workers()) - set(old), 5))
        # The old one may still take this connection.
        check('HUP: nginx works', nginx.post('/async', b'x')[0] == 202)
        check('HUP: the old one leaves', eventually(lambda: not set(old) & set(nginx.workers()), 10))
        check('HUP: within delivery_timeout', time.monotonic() - begin < 4.5, f'{time.monotonic() - begin:.1f} s')
        check('HUP: its loss is counted', sum(lost(nginx.log())) in (queued, queued + 1), (lost(nginx.log()), nginx.log()[-1500:]))
        nginx.stop(signal.SIGTERM)
        nginx.healthy('HUP, broker down')


def answers_while_leaving():
    """A synchronous request that waits for a broker that is not there gets its 503 although nginx leaves."""
    nginx = Nginx(HTTP.format(port=free_port(), delivery='2s'), SERVER)
    with nginx:
        s = socket.create_connection(('127.0.0.1', nginx.port))
        s.settimeout(10)
        s.sendall(b'POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx')
        time.sleep(0.3)
        nginx.send(signal.SIGQUIT)
        check('QUIT: the waiting request gets 503', b' 503 ' in s.recv(4096)[:15])
        check('QUIT: then it leaves', eventually(lambda: nginx.process.poll() == 0, 5), nginx.process.poll())
        nginx.healthy('QUIT with a waiting request')


def many_topics(name='QUIT with 50 topics'):
    """Not a delivery_timeout for each topic (N2)."""
    nginx = Nginx(HTTP.format(port=free_port(), delivery='2s'),
                  'location /t { kafka_pass main; kafka_topic topic-$arg_n; kafka_allowed_topics ~.; kafka_async on; }')
    with nginx:
        queued = sum(nginx.post(f'/t?n={n}', b'x')[0] == 202 for n in range(50))
        seconds = nginx.stop()
        check(f'{name}: bounded once', seconds < 3.5, f'{seconds:.1f} s')
        check(f'{name}: the loss is counted', sum(lost(nginx.log())) == queued, (queued, lost(nginx.log())))


def reload_changes_brokers(kafka):
    """N6: the new configuration's brokers are used."""
    nginx = Nginx(HTTP.format(port=free_port(), delivery='500ms').replace('request_timeout 1s', 'request_timeout 250ms'), SERVER)
    with nginx:
        check('before: 503', nginx.post('/t', b'x')[0] == 503)
        nginx.configure(HTTP.format(port=kafka.port, delivery='10s'), SERVER)
        nginx.reload()
        check('after: 200', eventually(lambda: nginx.post('/t', b'x')[0] == 200, 5))
        nginx.stop()
        nginx.healthy('new brokers')


with Kafka() as kafka:
    kafka.create_topics('t1', 't2')
    log = Log(kafka.port)
    reload_under_load(kafka, log)
    quit_delivers(kafka, log)
    reload_changes_brokers(kafka)
leaving_with_the_broker_down('QUIT, broker down', signal.SIGQUIT, '', '2s', 0, 3)
leaving_with_the_broker_down('QUIT, worker_shutdown_timeout', signal.SIGQUIT, 'worker_shutdown_timeout 1s;', '20s', 0.5, 2)
leaving_with_the_broker_down('TERM, broker down', signal.SIGTERM, '', '20s', 0, 0.8)
reload_with_the_broker_down()
answers_while_leaving()
many_topics()
finish()
