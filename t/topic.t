# Where a record goes and what it carries besides its value: topic, partition, key, timestamp, headers.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

our $Now = sub { abs($_[0] / 1000 - time) < 30 };

NginxKafka::prepare();
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: topic from variables
--- config
    location ~ ^/to/(?<name>.+)$ { kafka_pass main; kafka_topic ev-$name; kafka_allowed_topics ~^ev-; }
--- pipelined_requests eval
["POST /to/a\nfor a", "POST /to/b\nfor b"]
--- records eval
[{ topic => 'ev-a', value => 'for a' }, { topic => 'ev-b', value => 'for b' }]



=== TEST 2: a list is trimmed, its empties dropped, its repeats sent once
--- config
    location /t { kafka_pass main; kafka_topic " t2 ,, t1,t2	, ,t1"; }
--- request
POST /t
listed
--- records eval
[[{ topic => 't2', value => 'listed' }, { topic => 't1', value => 'listed' }]]



=== TEST 3: a list from a variable, of which one name is left
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1 t2; }
--- request
POST /t?t=,t1,,t1
single
--- records eval
{ topic => 't1', value => 'single' }



=== TEST 4: nothing but separators is no topic
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1; }
--- request
POST /t?t=,,,
x
--- error_code: 400



=== TEST 5: allowed by name: the whole name, with case
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t1 ev-a; }
--- pipelined_requests eval
["POST /t?t=t1\na", "POST /t?t=ev-a\nb", "POST /t?t=t\nc", "POST /t?t=t11\nd", "POST /t?t=T1\ne"]
--- error_code eval
[200, 200, 403, 403, 403]



=== TEST 6: allowed by regex: unanchored, with case
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~v-[ab]; }
--- pipelined_requests eval
["POST /t?t=ev-a\na", "POST /t?t=ev-b\nb", "POST /t?t=t1\nc", "POST /t?t=eV-a\nd"]
--- error_code eval
[200, 200, 403, 403]



=== TEST 7: allowed by regex without case
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics nothing ~*^log\.; }
--- pipelined_requests eval
["POST /t?t=Log.A\na", "POST /t?t=catalog.x\nb"]
--- error_code eval
[200, 403]



=== TEST 8: the list also binds constant topics beside variables
--- config
    location /t { kafka_pass main; kafka_topic t1,$arg_t; kafka_allowed_topics ~^ev-; }
--- request
POST /t?t=ev-a
x
--- error_code: 403



=== TEST 9: names that Kafka does not take
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; }
--- pipelined_requests eval
["POST /t?t=.\nx", "POST /t?t=..\nx", "POST /t?t=a/b\nx", "POST /t?t=a%20b\nx", "POST /t?t=" . "n" x 250 . "\nx", "POST /t?t=t1,b:c\nx"]
--- error_code eval
[(400) x 6]
--- response_body_like eval
[('"error":"[^"]*topic') x 6]



=== TEST 10: the longest name is looked for
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics ~.; }
--- request eval
"POST /t?t=" . "n" x 249 . "\nx"
--- error_code: 404



=== TEST 11: an explicit partition
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_partition $arg_p; kafka_key ignored; }
--- pipelined_requests eval
["POST /t?p=0\nin 0", "POST /t?p=7\nin 7", "POST /t?p=3\nin 3"]
--- records eval
[{ partition => 0, value => 'in 0' }, { partition => 7, value => 'in 7' }, { partition => 3, value => 'in 3', key => 'ignored' }]



=== TEST 12: partitions that are none
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_partition $arg_p; }
--- pipelined_requests eval
[map { "POST /t?p=$_\nx" } qw(8 -1 x 1.5 1x 2147483648 99999999999999999999 0x1)]
--- error_code eval
[(400) x 8]
--- response_body_like eval
[('"error":"[^"]*partition') x 8]



=== TEST 13: an empty partition is any
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_partition $arg_p; }
--- request
POST /t
anywhere
--- records eval
{ value => 'anywhere' }



=== TEST 14: keys lie where the Java client puts them
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_key $arg_k; }
--- pipelined_requests eval
[map { "POST /t?k=$_\nkeyed" } qw(user-1 user-2 user-3 21 foobar a-little-bit-long-string a)]
--- records eval
[{ key => 'user-1', partition => 4 }, { key => 'user-2', partition => 0 }, { key => 'user-3', partition => 3 },
 { key => '21', partition => 4 }, { key => 'foobar', partition => 6 },
 { key => 'a-little-bit-long-string', partition => 0 }, { key => 'a', partition => 4 }]



=== TEST 15: keys of bytes over 0x7f
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_key $http_x_key; }
--- request
POST /t
x
--- more_headers eval
"X-Key: \xff\x80"
--- records eval
{ key => "\xff\x80", partition => 0 }



=== TEST 16: partitioner crc32, as librdkafka and lua-resty-kafka
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; partitioner crc32; }
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_key $arg_k; }
--- pipelined_requests eval
["POST /t?k=foobar\nx", "POST /t?k=user-1\nx"]
--- records eval
[{ partition => 5 }, { partition => 4 }]



=== TEST 17: an empty key is none
--- config
    location /t { kafka_pass main; kafka_topic p8; kafka_key $arg_k; }
--- request
POST /t
x
--- records eval
{ key => undef }



=== TEST 18: timestamps: ms, and seconds with a point
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_timestamp $arg_ts; }
--- pipelined_requests eval
["POST /t?ts=1700000000123\nx", "POST /t?ts=1700000000.123\nx", "POST /t?ts=1700000000.5\nx", "POST /t?ts=0\nx", "POST /t?ts=\nx"]
--- records eval
[{ timestamp => 1700000000123 }, { timestamp => 1700000000123 }, { timestamp => 1700000000500 }, { timestamp => 0 }, { timestamp => $::Now }]



=== TEST 19: $msec is a timestamp
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_timestamp $msec; }
--- request
POST /t
x
--- records eval
{ timestamp => $::Now }



=== TEST 20: what is no timestamp
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_timestamp $arg_ts; }
--- pipelined_requests eval
[map { "POST /t?ts=$_\nx" } qw(yesterday 12x 1e3 -5 1.2.3 . 99999999999999999999 0x10)]
--- error_code eval
[(400) x 8]
--- response_body_like eval
[('"error":"[^"]*timestamp') x 8]



=== TEST 21: record headers, in order, of which empty ones are not sent
--- config
    location /t {
        kafka_pass main;
        kafka_topic t1;
        kafka_header id $arg_id;
        kafka_header none $arg_none;
        kafka_header tenant "a b";
        kafka_header id again-$request_method;
    }
--- request
POST /t?id=17
x
--- records eval
{ headers => 'id=17,tenant=a b,id=again-POST', value => 'x' }



=== TEST 22: bytes of a header value stay
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_header h $http_x_h; }
--- request
POST /t
x
--- more_headers eval
"X-H: caf\xe9 \x01"
--- records eval
{ headers => "h=caf\xe9 \x01" }



=== TEST 23: everything at once, and everything exact
--- config
    location /t {
        kafka_pass main;
        kafka_topic p8;
        kafka_partition 5;
        kafka_key $request_uri;
        kafka_timestamp 1234567890123;
        kafka_header method $request_method;
    }
--- request
PATCH /t?all
everything
--- response_body_like: "topic":"p8","partition":5,"offset":\d+
--- records eval
{ topic => 'p8', partition => 5, key => '/t?all', value => 'everything', timestamp => 1234567890123, headers => 'method=PATCH' }



=== TEST 24: two topics with one partition too far for one of them
--- config
    location /t { kafka_pass main; kafka_topic p8,t1; kafka_partition 6; }
--- request
POST /t
x
--- error_code: 400
--- response_body_like: partition



=== TEST 25: a topic that keeps the broker's time
--- config
    location /t { kafka_pass main; kafka_topic appended; kafka_timestamp 1000; }
--- request
POST /t
x
--- records eval
{ topic => 'appended', value => 'x', timestamp => $::Now }
