# What the client is told: design.md §4.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

NginxKafka::prepare();
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: one record, acknowledged
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
hello
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"message sent","topic":"t1","partition":0,"offset":\d+\}\n?\z
--- records eval
{ topic => 't1', value => 'hello', key => undef, headers => '', timestamp => sub { abs($_[0] / 1000 - time) < 30 } }



=== TEST 2: Content-Length is that of the answer, and there is no charset
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
PUT /t
x
--- raw_response_headers_like: Content-Length: \d+\r\n
--- response_headers
Content-Type: application/json
--- records eval
{ value => 'x' }



=== TEST 3: every default method produces
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- pipelined_requests eval
["POST /t\nby-POST", "PUT /t\nby-PUT", "PATCH /t\nby-PATCH", "DELETE /t\nby-DELETE"]
--- records eval
[{ value => 'by-POST' }, { value => 'by-PUT' }, { value => 'by-PATCH' }, { value => 'by-DELETE' }]



=== TEST 4: several topics, in order
--- config
    location /t { kafka_pass main; kafka_topic t2,t1; }
--- request
POST /t
to both
--- response_body_like: \A\{"message":"[^"]+","records":\[\{"topic":"t2","partition":0,"offset":\d+\},\{"topic":"t1","partition":0,"offset":\d+\}\]\}\n?\z
--- records eval
[[{ topic => 't2', value => 'to both' }, { topic => 't1', value => 'to both' }]]



=== TEST 5: a topic that does not exist, within a second
--- config
    location /t { kafka_pass main; kafka_topic nosuch; }
--- request
POST /t
x
--- timeout: 1.5
--- error_code: 404
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"Not Found","error":"topic does not exist"\}\n?\z



=== TEST 6: one of two topics does not exist: the worst status, and each outcome
--- config
    location /t { kafka_pass main; kafka_topic t1,nosuch2; }
--- request
POST /t
half
--- error_code: 404
--- response_body_like: \A\{"message":"[^"]+","records":\[\{"topic":"t1","partition":0,"offset":\d+\},\{"topic":"nosuch2","error":"topic does not exist","status":404\}\]\}\n?\z
--- records eval
{ topic => 't1', value => 'half' }



=== TEST 7: no topic
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; }
--- request
POST /t
x
--- error_code: 400
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"Bad Request","error":"[^"]*topic[^"]*"\}\n?\z



=== TEST 8: a topic outside the list
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1; }
--- request
POST /t?t=t2
outside-8
--- error_code: 403
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"Forbidden","error":"one or more target topics are not in the allowed topics list"\}\n?\z
--- not_produced eval
{ topic => 't2', value => 'outside-8' }



=== TEST 9: one topic of two outside the list: nothing is sent to any
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1; }
--- request
POST /t?t=t1,t2
outside-9
--- error_code: 403
--- response_body_like: allowed topics list
--- not_produced eval
{ topic => 't1', value => 'outside-9' }



=== TEST 10: GET does not produce
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
GET /t
--- error_code: 405
--- response_headers
Allow: POST, PUT, PATCH, DELETE
Content-Type: application/json
--- response_body_like: \A\{"message":"Method Not Allowed","error":"[^"]+"\}\n?\z



=== TEST 11: HEAD does not produce and has no body
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
HEAD /t
--- error_code: 405
--- response_headers
Allow: POST, PUT, PATCH, DELETE
--- response_body:



=== TEST 12: OPTIONS is refused, with the methods that would do
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_methods POST; }
--- request
OPTIONS /t
--- error_code: 405
--- response_headers
Allow: POST



=== TEST 13: GET where the operator says so
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_methods GET POST; kafka_key $arg_k; }
--- request
GET /t?k=by-get
--- records eval
{ value => '', key => 'by-get' }



=== TEST 14: a refused body does not harm the next request of the connection
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_methods POST; }
--- pipelined_requests eval
["PUT /t\n" . "y" x 200000, "POST /t\nafter the refusal"]
--- error_code eval
[405, 200]
--- response_body_like eval
['Method Not Allowed', 'message sent']
--- records eval
[undef, { value => 'after the refusal' }]



=== TEST 15: a record over max_message_size, with both sizes
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; max_message_size 1k; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n" . "z" x 2000
--- error_code: 413
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"Content Too Large","error":"[^"]*1024[^"]*"\}\n?\z



=== TEST 16: a body over client_max_body_size is nginx's own affair
--- config
    location /t { client_max_body_size 1k; kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n" . "z" x 2000
--- error_code: 413
--- response_headers
Content-Type: text/html
--- error_log
client intended to send too large body



=== TEST 17: asynchronous
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_async on; }
--- request
POST /t
queued-17
--- error_code: 202
--- response_headers
Content-Type: application/json
--- response_body_like: \A\{"message":"message queued"\}\n?\z
--- queued eval
{ topic => 't1', value => 'queued-17', key => undef }



=== TEST 18: asynchronous, a topic known to be missing
--- config
    location /sync { kafka_pass main; kafka_topic nosuch; }
    location /async { kafka_pass main; kafka_topic nosuch; kafka_async on; }
--- pipelined_requests eval
["POST /sync\nx", "POST /async\nx"]
--- error_code eval
[404, 404]
--- response_body_like eval
['topic does not exist', 'topic does not exist']



=== TEST 19: asynchronous, a topic not yet known is queued, its loss logged
--- config
    location /t { kafka_pass main; kafka_topic nosuch; kafka_async on; }
--- request
POST /t
x
--- wait: 1.5
--- error_code: 202
--- error_log eval
qr/nosuch/



=== TEST 20: kafka_success_status 201
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_success_status 201; }
--- request
POST /t
created
--- error_code: 201
--- response_body_like: "message":"message sent"
--- records eval
{ value => 'created' }



=== TEST 21: kafka_success_status 204 has no body
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_key k21; kafka_success_status 204; }
--- request
POST /t
no content 21
--- error_code: 204
--- response_headers
! Content-Type
--- response_body:
--- queued eval
{ topic => 't1', value => 'no content 21', key => 'k21' }



=== TEST 22: kafka_success_status with kafka_async
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_success_status 200; kafka_async on; }
--- request
POST /t
queued-22
--- error_code: 200
--- response_body_like: message queued



=== TEST 23: kafka_success_status does not touch errors
--- config
    location /t { kafka_pass main; kafka_topic nosuch; kafka_success_status 201; }
--- request
POST /t
x
--- error_code: 404
--- response_body_like: Not Found



=== TEST 24: what lies behind the gateway is not told
--- http_config
    kafka_cluster main { bootstrap_servers $TEST_NGINX_DEAD_BROKER; delivery_timeout 1s; request_timeout 500ms; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- timeout: 5
--- error_code: 503
--- response_headers
Content-Type: application/json
--- raw_response_headers_like: Retry-After: [1-9]\d*\r\n
--- response_body_like: \A\{"message":"Service Unavailable","error":"could not send message to topic"\}\n?\z
--- error_log eval
qr/\[error\].*127\.0\.0\.9/



=== TEST 25: kafka_error_detail tells it
--- http_config
    kafka_cluster main { bootstrap_servers $TEST_NGINX_DEAD_BROKER; delivery_timeout 1s; request_timeout 500ms; }
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_error_detail on; }
--- request
POST /t
x
--- timeout: 5
--- error_code: 503
--- response_body_like: \A\{"message":"Service Unavailable","error":"(?!could not send message to topic")[^"]*127\.0\.0\.9[^"]*"\}\n?\z



=== TEST 26: acks 0: sent, but where to nobody says
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; acks 0; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
acks-zero-26
--- response_body_like: \A\{"message":"message sent","topic":"t1","partition":0,"offset":null\}\n?\z
--- queued eval
{ topic => 't1', value => 'acks-zero-26' }



=== TEST 27: acks 1
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; acks 1; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
acks-one
--- records eval
{ value => 'acks-one' }



=== TEST 28: pipelined requests are answered in order
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1 t2; }
--- pipelined_requests eval
["POST /t?t=t1\none", "POST /t?t=t2\ntwo", "POST /t?t=t3\nthree", "POST /t?t=t1\nfour"]
--- error_code eval
[200, 200, 403, 200]
--- response_body_like eval
['"topic":"t1"', '"topic":"t2"', 'Forbidden', '"topic":"t1"']
--- records eval
[{ value => 'one' }, { value => 'two' }, undef, { value => 'four' }]



=== TEST 29: a record that the broker refuses as too large, and others beside it
--- config
    location /t { kafka_pass main; kafka_topic small; }
--- pipelined_requests eval
["POST /t\nfits", "POST /t\n" . CORE::join('', map { chr(33 + ($_ * 7919) % 90) } 1 .. 5000), "POST /t\nfits too"]
--- error_code eval
[200, 413, 200]
--- response_body_like eval
['message sent', '"message":"Content Too Large","error":"[^"]+"', 'message sent']
--- records eval
[{ value => 'fits' }, undef, { value => 'fits too' }]



=== TEST 30: too large for one topic of two
--- config
    location /t { kafka_pass main; kafka_topic t1,small; }
--- request eval
"POST /t\n" . "b" x 5000
--- error_code: 413
--- response_body_like: \A\{"message":"[^"]*","records":\[\{"topic":"t1","partition":0,"offset":\d+\},\{"topic":"small","error":"[^"]+","status":413\}\]\}
--- records eval
{ topic => 't1', value => 'b' x 5000 }



=== TEST 31: pipelined requests are no abort
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_ignore_client_abort off; }
--- pipelined_requests eval
[map { "POST /t\npipelined $_" } 1 .. 20]
--- error_code eval
[(200) x 20]
--- records eval
[map { { value => "pipelined $_" } } 1 .. 20]



=== TEST 32: HEAD where the operator allows GET
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_methods GET POST; }
--- request
HEAD /t
--- error_code: 405
--- response_body:



=== TEST 33: conditions about documents do not change the answer for a record
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- pipelined_requests eval
["POST /t\nx", "POST /t\nx", "POST /t\nx"]
--- more_headers
If-None-Match: *
If-Match: "x"
If-Unmodified-Since: Mon, 01 Jan 2035 00:00:00 GMT
--- error_code eval
[200, 200, 200]
--- response_body_like eval
["message sent", "message sent", "message sent"]



=== TEST 34: more topics in one request than max_topics, and the next request is served
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; max_topics 2; }
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; }
--- pipelined_requests eval
["POST /t?t=x1,x2,x3\nx", "POST /t?t=t1\nx"]
--- error_code eval
[503, 200]
--- response_body_like eval
["could not send message to topic", "message sent"]
--- no_error_log
[crit]



=== TEST 35: acks that cost idempotence are warned of
--- http_config
    kafka_cluster main {
        bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT;
        acks 1;
    }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- response_body_like: message sent
--- error_log eval
qr/\[warn\].*without idempotence.* in \S+:\d+/
