#!/usr/bin/env python3
"""Topics that come and go while nginx runs."""
import json
import os
import subprocess
import threading
import time

from harness import Kafka, Load, Log, Nginx, check, eventually, finish, note, nothing_lost, rss

SERVER = '''
        location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; }
        location /auto { kafka_pass auto; kafka_topic $arg_t; kafka_allowed_topics ~.; }
        location /few { kafka_pass few; kafka_topic $arg_t; kafka_allowed_topics ~.; }
        location /async { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; kafka_async on; }
'''


def made_a_moment_ago(nginx, kafka):
    """B3: a topic is not missing for ever because it was asked for too early."""
    check('not there: 404', nginx.post('/t?t=young', b'x')[0] == 404)
    kafka.create_topics('young')
    begin = time.monotonic()
    check('created: 200', eventually(lambda: nginx.post('/t?t=young', b'x')[0] == 200, 10, 0.1))
    check('soon', time.monotonic() - begin < 3, f'{time.monotonic() - begin:.1f} s')
    kafka.create_topics('young-2')
    status, body, _ = nginx.post('/t?t=young-2', b'at once')
    check('created and used at once: 200', status == 200, body)


def created_by_producing(nginx, log):
    """auto_create_topics: the first answers of a broker are LEADER_NOT_AVAILABLE or unknown."""
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(nginx.post('/auto?t=created', b'%d' % n)[0])) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check('auto_create_topics: all 200', answers == [200] * 10, answers)
    check('each once', log.count('created') == {b'%d' % n: 1 for n in range(10)}, log.count('created'))


def missing_many_times(nginx):
    """B1, B2: 404 quickly, whoever else asks at the same time."""
    begin = time.monotonic()
    answers = [nginx.post('/t?t=nosuch', b'x')[0] for _ in range(100)]
    took = time.monotonic() - begin
    check('a missing topic a hundred times: 404', answers == [404] * 100, set(answers))
    check('quickly', took < 15, f'{took:.1f} s')
    with Load(nginx.port, '/t?t=nosuch', 20) as load:
        time.sleep(2)
    check('a missing topic for many at once: 404', set(load.by_status()) == {404}, load.by_status())
    slow = max(took for _, took, _, _ in load.times)
    check('each within a second or so', slow < 1.5, f'{slow:.1f} s')


def missing_for_async(nginx, kafka):
    """Nobody waits for the answer to an async record, so the latest word about a topic counts longer."""
    check('async, not known to be missing: 202', nginx.post('/async?t=nowhere', b'x')[0] == 202)
    time.sleep(3)
    status, body, _ = nginx.post('/async?t=nowhere', b'x')
    check('async, known to be missing: 404', status == 404 and b'topic does not exist' in body, body)
    kafka.create_topics('nowhere')
    check('created: 202', eventually(lambda: nginx.post('/async?t=nowhere', b'x')[0] == 202, 5, 0.2))


def deleted_and_recreated(nginx, kafka, log):
    """B7: the sequence numbers of a topic's former life are no reason to fail for ever."""
    kafka.create_topics('phoenix')
    for n in range(5):
        check(f'before, {n}', nginx.post('/t?t=phoenix', b'before')[0] == 200)
    kafka.tool('delete-topic', kafka.dir, 'phoenix')
    time.sleep(1)
    kafka.create_topics('phoenix')
    check('recreated: 200 again', eventually(lambda: nginx.post('/t?t=phoenix', b'after')[0] == 200, 20, 0.2))
    check('and goes on', all(nginx.post('/t?t=phoenix', b'on')[0] == 200 for _ in range(5)))
    check('in the new topic', log.count('phoenix')[b'on'] == 5, log.count('phoenix'))


def too_many(nginx):
    """max_topics bounds what requests can make the worker remember."""
    worker = nginx.workers()[0]
    answers = [nginx.post(f'/few?t=flood-{n}', b'x') for n in range(15)]
    statuses = [status for status, _, _ in answers]
    check('beyond max_topics: refused, not remembered', set(statuses) <= {404, 503} and statuses[:3] == [404] * 3, statuses)
    check('a good topic still works', eventually(lambda: nginx.post('/few?t=young', b'x')[0] == 200, 5, 0.2))
    for n in range(300):
        nginx.post(f'/async?t=warm-{n}', b'x')
    before = rss(worker)
    for n in range(3000):
        nginx.post(f'/async?t=storm-{n}', b'x')
    time.sleep(3)
    grown = (rss(worker) - before) >> 10
    note(f'3000 missing topics: {grown} kB')
    check('thousands of missing topics: memory is bounded', grown < 6000, f'{grown} kB')
    check('and the worker works', nginx.post('/t?t=young', b'x')[0] == 200)


with Kafka(settings=['auto.create.topics.enable=true']) as kafka:
    # Metadata requests before version 4 would create topics by themselves, whatever the module wants.
    servers = f'bootstrap_servers 127.0.0.1:{kafka.port};'
    nginx = Nginx(f'''
    kafka_cluster main {{ {servers} }}
    kafka_cluster auto {{ {servers} auto_create_topics on; }}
    kafka_cluster few {{ {servers} max_topics 5; }}
    ''', SERVER)
    log = Log(kafka.port)
    with nginx:
        made_a_moment_ago(nginx, kafka)
        created_by_producing(nginx, log)
        missing_many_times(nginx)
        missing_for_async(nginx, kafka)
        deleted_and_recreated(nginx, kafka, log)
        too_many(nginx)
        nginx.stop()
        nginx.healthy('topics')
finish()
