#!/usr/bin/env python3
"""Bodies over HTTP/2, and bodies that trickle over HTTP/1.1, arrive byte for byte."""
import json
import os
import re
import socket
import subprocess
import time

from harness import Log, Nginx, check, finish

KAFKA = int(os.environ['TEST_NGINX_KAFKA_PORT'])
BODY = os.urandom(300_000)

HTTP = f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{KAFKA}; }}'
SERVER = '''
        location /t { kafka_pass main; kafka_topic t1; }
        location /memory { client_body_buffer_size 1m; kafka_pass main; kafka_topic t1; }
        location /two { kafka_pass main; kafka_topic t1,t2; }
        location /async { kafka_pass main; kafka_topic t1; kafka_async on; }
'''
log = Log(KAFKA)


def stored(answer):
    at = json.loads(answer)
    return log.record(at['topic'], at['partition'], at['offset'])


def over_http2():
    with Nginx(HTTP, SERVER, http2=True) as nginx:
        def curl(path, body, *options):
            (nginx.dir / 'body').write_bytes(body)
            done = subprocess.run(
                ['curl', '-sS', '--http2-prior-knowledge', '--max-time', '20', '-w', '\n%{http_version} %{http_code}',
                 '--data-binary', f'@{nginx.dir}/body', *options, f'http://127.0.0.1:{nginx.port}{path}'],
                capture_output=True, text=True)
            answer, _, told = done.stdout.rpartition('\n')
            return answer, told + done.stderr

        for name, path, body in [('300 KB', '/t', BODY), ('300 KB in memory', '/memory', BODY), ('one byte', '/t', b'\0'),
                                 ('16 KB and one', '/t', BODY[:16385]), ('nothing', '/t', b'')]:
            answer, told = curl(path, body)
            check(f'HTTP/2, {name}: answered', told == '2 200', f'{told} {answer}')
            check(f'HTTP/2, {name}: byte for byte', told == '2 200' and stored(answer) == body)
        # Without Content-Length the body ends with its stream.
        answer, told = curl('/t', BODY, '-H', 'Content-Length:', '-H', 'Transfer-Encoding: chunked')
        check('HTTP/2 without a length: byte for byte', told == '2 200' and stored(answer) == BODY, told)
        answer, told = curl('/t', BODY, '-H', 'Expect: 100-continue')
        check('HTTP/2 with Expect: byte for byte', told == '2 200' and stored(answer) == BODY, told)
        answer, told = curl('/async', b'h2 async')
        check('HTTP/2, asynchronous', told == '2 202', told)
        # Without a body: nginx resets the stream of one that it refuses, and curl 7.88 calls that an error.
        done = subprocess.run(['curl', '-sSi', '--http2-prior-knowledge', '-X', 'OPTIONS', f'http://127.0.0.1:{nginx.port}/t'],
                              capture_output=True, text=True)
        check('HTTP/2, refused method', 'HTTP/2 405' in done.stdout and 'allow: POST, PUT, PATCH, DELETE' in done.stdout, done)

        for path in ('/t', '/two', '/async'):
            (nginx.dir / 'body').write_bytes(BODY[:2000])
            done = subprocess.run(
                ['h2load', '-n', '2000', '-c', '4', '-m', '50', '-t', '1', '-d', str(nginx.dir / 'body'),
                 f'http://127.0.0.1:{nginx.port}{path}'], capture_output=True, text=True, timeout=120)
            codes = re.search(r'status codes: (\d+) 2xx', done.stdout)
            check(f'h2load, 50 streams on each of 4 connections to {path}: only 2xx', codes and codes[1] == '2000', done.stdout[-800:])
        nginx.stop()
        nginx.healthy('HTTP/2')


def trickling():
    with Nginx(HTTP, SERVER) as nginx:
        def talk(chunks, head, pause=0.0):
            with socket.create_connection(('127.0.0.1', nginx.port)) as s:
                s.settimeout(20)
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.sendall(b'POST /t HTTP/1.1\r\nHost: a\r\nConnection: close\r\n' + head + b'\r\n\r\n')
                for chunk in chunks:
                    s.sendall(chunk)
                    if pause:
                        time.sleep(pause)
                answer = b''
                while data := s.recv(65536):
                    answer += data
            head, _, body = answer.rpartition(b'\r\n\r\n')
            return head, body

        body = BODY[:400]
        head, answer = talk([b'%x\r\n%s\r\n' % (1, body[i:i + 1]) for i in range(len(body))] + [b'0\r\n\r\n'],
                            b'Transfer-Encoding: chunked', 0.001)
        check('1-byte chunks in packets of their own: byte for byte', b' 200 ' in head and stored(answer) == body, head)
        stream = b''.join(b'%x\r\n%s\r\n' % (1, body[i:i + 1]) for i in range(len(body))) + b'0\r\n\r\n'
        head, answer = talk([stream[i:i + 1] for i in range(len(stream))], b'Transfer-Encoding: chunked')
        check('chunks cut anywhere: byte for byte', b' 200 ' in head and stored(answer) == body, head)
        head, answer = talk([body[i:i + 1] for i in range(len(body))], b'Content-Length: 400', 0.001)
        check('a body byte by byte: byte for byte', b' 200 ' in head and stored(answer) == body, head)
        head, answer = talk([BODY[i:i + 5000] for i in range(0, len(BODY), 5000)], b'Content-Length: 300000', 0.002)
        check('300 KB in 60 packets: byte for byte', b' 200 ' in head and stored(answer) == BODY, head)
        nginx.stop()
        nginx.healthy('trickling')


over_http2()
trickling()
finish()
