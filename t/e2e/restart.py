#!/usr/bin/env python3
"""Kafka is killed with -9 and restarted under load; then frozen for less than delivery_timeout.

Only 200, 503 and 504; 200 again within seconds of its return; no acknowledged record missing, none
doubled. A freeze shorter than delivery_timeout fails no request at all."""
import threading
import time

from harness import Kafka, Load, Log, Nginx, check, eventually, finish, note, nothing_lost

HTTP = '''
    kafka_cluster main {{
        bootstrap_servers 127.0.0.1:{port};
        delivery_timeout {delivery};
        request_timeout {request};
        reconnect_backoff 50ms 1s;
    }}
'''
SERVER = '''
        location /t { kafka_pass main; kafka_topic t1; }
        location /keyed { kafka_pass main; kafka_topic p8; kafka_key $request_id; }
        location /detail { kafka_pass main; kafka_topic t1; kafka_error_detail on; }
        location /async { kafka_pass main; kafka_topic t2; kafka_async on; }
'''


def killed_and_restarted(kafka, log):
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='4s', request='2s'), SERVER)
    with nginx:
        with Load(nginx.port, '/t', prefix='kill-') as load, Load(nginx.port, '/keyed', 4, prefix='kill-k-', rate=200) as keyed:
            time.sleep(2)
            kafka.kill()
            dead = time.monotonic()
            time.sleep(7)
            kafka.restart()
            back = time.monotonic()
            time.sleep(6)
        for one in (load, keyed):
            statuses = one.by_status()
            note(one.path, dict(statuses))
            check(f'{one.path}: only 200, 503 and 504', set(statuses) <= {200, 503, 504}, statuses)
            good = [begin + took for begin, took, status, _ in one.times if status == 200]
            resumed = min((t for t in good if t > back), default=None)
            check(f'{one.path}: 200 again within seconds', resumed is not None and resumed - back < 4,
                  f'{resumed and resumed - back:.1f} s')
            # Answers while nobody is there: 504 for what had been sent, 503 for the rest; none for ever.
            late = [took for begin, took, _, _ in one.times if begin > dead]
            check(f'{one.path}: no answer takes longer than delivery_timeout', max(late) < 5, f'{max(late):.1f} s')
            unknown = {body for _, _, status, body in one.times if status == 504}
            check(f'{one.path}: 504 says that the outcome is unknown', all(b'delivery outcome unknown' in b for b in unknown), unknown)
            refused = {body for _, _, status, body in one.times if status == 503}
            check(f'{one.path}: 503 is there while Kafka is down', refused, dict(statuses))
        nothing_lost('kill -9, /t', load, log.count('t1'))
        nothing_lost('kill -9, /keyed', keyed, log.count('p8'))
        not_written = [name for name, status in load.results.items() if status == 503]
        there = log.count('t1')
        check('503 means definitely not written', not any(there[name.encode()] for name in not_written),
              [name for name in not_written if there[name.encode()]][:5])
        nginx.stop()
        nginx.healthy('kill -9')


def restarted_within_the_timeout(kafka, log):
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='40s', request='5s'), SERVER)
    with nginx:
        with Load(nginx.port, '/async', 4, prefix='again-', rate=300) as load:
            time.sleep(1)
            kafka.kill()
            kafka.restart()
            time.sleep(3)
        note('/async', dict(load.by_status()))
        check('asynchronous, restart within delivery_timeout: only 202', set(load.by_status()) == {202}, load.by_status())
        nginx.stop()
        nginx.healthy('restart within the timeout')
    nothing_lost('restart within delivery_timeout', load, log.count('t2'))


def frozen(kafka, log):
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='15s', request='7s'), SERVER)
    with nginx:
        with Load(nginx.port, '/t', prefix='freeze-') as load:
            for _ in range(2):
                time.sleep(1)
                kafka.freeze()
                time.sleep(4)
                kafka.thaw()
            time.sleep(2)
        note('frozen', dict(load.by_status()))
        check('a freeze shorter than request_timeout fails no request', set(load.by_status()) == {200}, load.by_status())
        nothing_lost('frozen', load, log.count('t1'))
        nginx.stop()
        nginx.healthy('frozen')
    # Longer than request_timeout: the connection is given up and the batch sent again, with the same sequence.
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='15s', request='1s'), SERVER)
    with nginx:
        with Load(nginx.port, '/t', prefix='long-') as load:
            time.sleep(1)
            kafka.freeze()
            time.sleep(5)
            kafka.thaw()
            time.sleep(3)
        note('frozen for several request_timeouts', dict(load.by_status()))
        check('a freeze longer than request_timeout, shorter than delivery_timeout fails none', set(load.by_status()) == {200}, load.by_status())
        nothing_lost('frozen for several request_timeouts', load, log.count('t1'))
        nginx.stop()
        nginx.healthy('frozen for several request_timeouts')


def frozen_for_ever(kafka, log):
    """Beyond delivery_timeout: 504 for what had been sent, 503 at once for what comes later."""
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='1500ms', request='700ms'), SERVER)
    with nginx:
        check('warm', nginx.post('/t', b'warm')[0] == 200)
        kafka.freeze()
        answers = []
        threads = [threading.Thread(target=lambda p=path: answers.append((p, *nginx.post(p, b'stuck ' + p.encode()))))
                   for path in ('/t', '/detail')]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for path, status, body, _ in answers:
            check(f'{path}: sent, but no answer: 504', status == 504, (status, body))
            # An operator's detail must not hide what the client has to know.
            check(f'{path}: the outcome is unknown, says the answer', b'unknown' in body, body)
        detail = dict((path, body) for path, _, body, _ in answers)['/detail']
        check('/detail: tells more', detail != dict((path, body) for path, _, body, _ in answers)['/t'], detail)
        # By now the cluster has been unreachable for delivery_timeout.
        time.sleep(1)
        nginx.post('/t', b'probe')
        begin = time.monotonic()
        status, body, headers = nginx.post('/t', b'later')
        check('later: 503 at once', status == 503 and time.monotonic() - begin < 0.5, (status, f'{time.monotonic() - begin:.1f} s'))
        check('with Retry-After', int(headers['Retry-After'] or 0) >= 1, headers['Retry-After'])
        kafka.thaw()
        check('thawed: 200', eventually(lambda: nginx.post('/t', b'again')[0] == 200, 10, 0.1))
        nginx.stop()
        nginx.healthy('frozen for ever')
    there = log.count('t1')
    check('nothing possibly written is there twice', all(there[b'stuck ' + p] <= 1 for p in (b'/t', b'/detail')))
    check('503 means not written', there[b'later'] == 0, there[b'later'])


def not_there_at_first(log, kafka):
    """The broker comes after nginx: no reload needed."""
    kafka.kill()
    nginx = Nginx(HTTP.format(port=kafka.port, delivery='1s', request='500ms'), SERVER)
    with nginx:
        status, _, headers = nginx.post('/t', b'too early')
        check('nobody there: 503 with Retry-After', status == 503 and int(headers['Retry-After'] or 0) >= 1, (status, headers['Retry-After']))
        kafka.restart()
        begin = time.monotonic()
        while (status := nginx.post('/t', b'in time')[0]) != 200 and time.monotonic() - begin < 10:
            time.sleep(0.1)
        check('200 soon after it came', status == 200 and time.monotonic() - begin < 5, f'{time.monotonic() - begin:.1f} s')
        nginx.stop()
        nginx.healthy('late broker')


with Kafka() as kafka:
    kafka.create_topics('t1', 't2', 'p8:8')
    log = Log(kafka.port)
    killed_and_restarted(kafka, log)
    restarted_within_the_timeout(kafka, log)
    frozen(kafka, log)
    frozen_for_ever(kafka, log)
    not_there_at_first(log, kafka)
finish()
