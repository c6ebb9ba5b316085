# kafka_cluster { }: what is refused, at which line, and what to write instead.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';

NginxKafka::prepare();
run_tests();

__DATA__

=== TEST 1: no bootstrap_servers
--- fault
kafka_cluster main { #!
}
--- remedy: no "bootstrap_servers".*add "bootstrap_servers HOST:PORT;"



=== TEST 2: no name
--- fault
kafka_cluster { #!
bootstrap_servers 127.0.0.1:9092;
}
--- remedy: (invalid number of arguments|name).*kafka_cluster



=== TEST 3: the same name twice
--- fault
kafka_cluster a { bootstrap_servers 127.0.0.1:9092; }
kafka_cluster a { #!
bootstrap_servers 127.0.0.1:9092;
}
--- remedy: duplicate.*"a"|"a".*duplicate



=== TEST 4: an unknown directive
--- cluster_fault
  lingr 5ms; #!
--- remedy: unknown directive "lingr" in kafka_cluster, did you mean "linger"



=== TEST 5: a directive of another place
--- cluster_fault
kafka_topic t1; #!
--- remedy: unknown directive "kafka_topic" in kafka_cluster



=== TEST 6: a block inside the block
--- cluster_fault
linger 5ms { } #!
--- remedy: linger|block|\{



=== TEST 7: bootstrap_servers: without a port
--- cluster_fault
bootstrap_servers 127.0.0.1; #!
--- remedy: port is missing.*HOST:PORT



=== TEST 8: bootstrap_servers: a port that is no number
--- cluster_fault
bootstrap_servers 127.0.0.1:http; #!
--- remedy: number from 1 to 65535



=== TEST 9: bootstrap_servers: port 0
--- cluster_fault
bootstrap_servers 127.0.0.1:0; #!
--- remedy: number from 1 to 65535



=== TEST 10: bootstrap_servers: port 65536
--- cluster_fault
bootstrap_servers 127.0.0.1:65536; #!
--- remedy: number from 1 to 65535



=== TEST 11: bootstrap_servers: no host
--- cluster_fault
bootstrap_servers :9092; #!
--- remedy: host is missing.*HOST:PORT



=== TEST 12: bootstrap_servers: IPv6 without brackets
--- cluster_fault
bootstrap_servers ::1:9092; #!
--- remedy: brackets.*\[2001:db8::1\]:9092



=== TEST 13: bootstrap_servers: a bracket that is not closed
--- cluster_fault
bootstrap_servers [::1:9092; #!
--- remedy: \[2001:db8::1\]:9092



=== TEST 14: bootstrap_servers: a URL
--- cluster_fault
bootstrap_servers http://kafka:9092; #!
--- remedy: scheme.*HOST:PORT



=== TEST 15: bootstrap_servers: a variable
--- cluster_fault
bootstrap_servers $host:9092; #!
--- remedy: variables.*HOST:PORT



=== TEST 16: bootstrap_servers: the second of two
--- cluster_fault
bootstrap_servers 127.0.0.1:9092 kafka; #!
--- remedy: "kafka".*port is missing



=== TEST 17: bootstrap_servers twice
--- cluster_fault
bootstrap_servers 127.0.0.1:9092;
bootstrap_servers 127.0.0.1:9093; #!
--- remedy: "bootstrap_servers" directive is duplicate



=== TEST 18: bootstrap_servers without a value
--- cluster_fault
bootstrap_servers; #!
--- remedy: invalid number of arguments.*bootstrap_servers HOST:PORT



=== TEST 19: client_id with a colon
--- cluster_fault
client_id a:b; #!
--- remedy: "a:b" in "client_id" directive.*A-Z



=== TEST 20: client_id, empty
--- cluster_fault
client_id ""; #!
--- remedy: "" in "client_id" directive



=== TEST 21: acks 2
--- cluster_fault
acks 2; #!
--- remedy: "2" in "acks" directive.*"all".*"1".*"0"



=== TEST 22: acks without a value
--- cluster_fault
acks; #!
--- remedy: acks all \| 1 \| 0;



=== TEST 23: acks with two
--- cluster_fault
acks all 1; #!
--- remedy: acks all \| 1 \| 0;



=== TEST 24: idempotence maybe
--- cluster_fault
idempotence maybe; #!
--- remedy: "maybe" in "idempotence" directive.*"auto".*"on".*"off"



=== TEST 25: idempotence on with acks 1
--- cluster_fault
acks 1;
idempotence on; #!
linger 1ms;
--- remedy: "idempotence on" needs "acks all"



=== TEST 26: idempotence on, acks after it
--- cluster_fault
idempotence on; #!
acks 0;
--- remedy: "idempotence on" needs "acks all"



=== TEST 27: max_in_flight 6
--- cluster_fault
max_in_flight 6; #!
linger 1ms;
--- remedy: at most "max_in_flight 5;"



=== TEST 28: max_in_flight 0
--- cluster_fault
max_in_flight 0; #!
--- remedy: "0" in "max_in_flight" directive.*whole number from 1



=== TEST 29: max_in_flight x
--- cluster_fault
max_in_flight x; #!
--- remedy: "x" in "max_in_flight" directive.*whole number



=== TEST 30: linger: no time
--- cluster_fault
linger 5x; #!
--- remedy: "5x" in "linger" directive.*"5s"



=== TEST 31: delivery_timeout: no time
--- cluster_fault
delivery_timeout 5x; #!
--- remedy: "5x" in "delivery_timeout" directive.*"5s"



=== TEST 32: request_timeout: no time
--- cluster_fault
request_timeout 5x; #!
--- remedy: "5x" in "request_timeout" directive.*"5s"



=== TEST 33: connect_timeout: no time
--- cluster_fault
connect_timeout 5x; #!
--- remedy: "5x" in "connect_timeout" directive.*"5s"



=== TEST 34: idle_timeout: no time
--- cluster_fault
idle_timeout 5x; #!
--- remedy: "5x" in "idle_timeout" directive.*"5s"



=== TEST 35: metadata_max_age: no time
--- cluster_fault
metadata_max_age 5x; #!
--- remedy: "5x" in "metadata_max_age" directive.*"5s"



=== TEST 36: delivery_timeout 0
--- cluster_fault
delivery_timeout 0; #!
--- remedy: "0" in "delivery_timeout" directive



=== TEST 37: request_timeout 0
--- cluster_fault
request_timeout 0; #!
--- remedy: "0" in "request_timeout" directive



=== TEST 38: connect_timeout 0
--- cluster_fault
connect_timeout 0; #!
--- remedy: "0" in "connect_timeout" directive



=== TEST 39: batch_size: no size
--- cluster_fault
batch_size 1x; #!
--- remedy: "1x" in "batch_size" directive.*"256k"



=== TEST 40: batch_size 0
--- cluster_fault
batch_size 0; #!
--- remedy: "0" in "batch_size" directive



=== TEST 41: max_message_size: no size
--- cluster_fault
max_message_size 1x; #!
--- remedy: "1x" in "max_message_size" directive.*"256k"



=== TEST 42: max_message_size 0
--- cluster_fault
max_message_size 0; #!
--- remedy: "0" in "max_message_size" directive



=== TEST 43: max_request_size: no size
--- cluster_fault
max_request_size 1x; #!
--- remedy: "1x" in "max_request_size" directive.*"256k"



=== TEST 44: max_request_size 0
--- cluster_fault
max_request_size 0; #!
--- remedy: "0" in "max_request_size" directive



=== TEST 45: buffer_size: no size
--- cluster_fault
buffer_size 1x; #!
--- remedy: "1x" in "buffer_size" directive.*"256k"



=== TEST 46: buffer_size 0
--- cluster_fault
buffer_size 0; #!
--- remedy: "0" in "buffer_size" directive



=== TEST 47: max_message_size over buffer_size
--- cluster_fault
buffer_size 1m;
max_message_size 2m; #!
--- remedy: lower "max_message_size" or raise "buffer_size"



=== TEST 49: request_timeout over delivery_timeout
--- cluster_fault
request_timeout 6s; #!
delivery_timeout 5s;
--- remedy: request_timeout.*longer than "delivery_timeout"



=== TEST 50: retry_backoff with one time
--- cluster_fault
retry_backoff 100ms; #!
--- remedy: retry_backoff MIN MAX;



=== TEST 51: retry_backoff: MIN over MAX
--- cluster_fault
retry_backoff 2s 1s; #!
--- remedy: "retry_backoff"



=== TEST 52: retry_backoff: no time
--- cluster_fault
retry_backoff 100ms x; #!
--- remedy: "x" in "retry_backoff" directive



=== TEST 53: reconnect_backoff with one time
--- cluster_fault
reconnect_backoff 100ms; #!
--- remedy: reconnect_backoff MIN MAX;



=== TEST 54: reconnect_backoff: MIN over MAX
--- cluster_fault
reconnect_backoff 2s 1s; #!
--- remedy: "reconnect_backoff"



=== TEST 55: reconnect_backoff: no time
--- cluster_fault
reconnect_backoff 100ms x; #!
--- remedy: "x" in "reconnect_backoff" directive



=== TEST 56: partitioner fnv1a
--- cluster_fault
partitioner fnv1a; #!
--- remedy: "fnv1a" in "partitioner" directive.*"murmur2".*"crc32".*"random"



=== TEST 57: auto_create_topics yes
--- cluster_fault
auto_create_topics yes; #!
--- remedy: "yes" in "auto_create_topics" directive.*"on" or "off"



=== TEST 58: max_topics 0
--- cluster_fault
max_topics 0; #!
--- remedy: "0" in "max_topics" directive



=== TEST 59: max_topics x
--- cluster_fault
max_topics -1; #!
--- remedy: "-1" in "max_topics" directive



=== TEST 60: api_versions: an unknown API
--- cluster_fault
api_versions fetch=1-2; #!
--- remedy: fetch.*"?produce|produce.*fetch



=== TEST 61: api_versions: no range
--- cluster_fault
api_versions produce=abc; #!
--- remedy: produce



=== TEST 62: api_versions: backwards
--- cluster_fault
api_versions produce=9-3; #!
--- remedy: "9-3" are the wrong way round



=== TEST 63: api_versions: none that we speak
--- cluster_fault
api_versions produce=90-99; #!
--- remedy: produce



=== TEST 64: linger twice
--- cluster_fault
linger 1ms;
linger 1ms; #!
--- remedy: "linger" directive is duplicate



=== TEST 65: acks twice
--- cluster_fault
acks 1;
acks 1; #!
--- remedy: "acks" directive is duplicate



=== TEST 66: batch_size twice
--- cluster_fault
batch_size 1k;
batch_size 1k; #!
--- remedy: "batch_size" directive is duplicate



=== TEST 67: partitioner twice
--- cluster_fault
partitioner crc32;
partitioner crc32; #!
--- remedy: "partitioner" directive is duplicate



=== TEST 68: api_versions twice
--- cluster_fault
api_versions produce=3-8;
api_versions produce=3-8; #!
--- remedy: "api_versions" directive is duplicate



=== TEST 69: auto_create_topics twice
--- cluster_fault
auto_create_topics on;
auto_create_topics on; #!
--- remedy: "auto_create_topics" directive is duplicate



=== TEST 70: kafka_cluster in a server
--- fault
server {
kafka_cluster a { #!
bootstrap_servers 127.0.0.1:9092;
}
}
--- remedy: "kafka_cluster" directive is not allowed here



=== TEST 71: everything at once
--- http_config
    kafka_cluster main {
        bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT [::1]:9092 localhost:9092,kafka-2.example.com:9092;
        client_id nginx-1.test_A;
        acks all;
        idempotence on;
        linger 2ms;
        batch_size 64k;
        max_in_flight 5;
        max_message_size 2m;
        max_request_size 4m;
        buffer_size 16m;
        delivery_timeout 10s;
        request_timeout 3s;
        connect_timeout 1s;
        retry_backoff 50ms 500ms;
        reconnect_backoff 20ms 2s;
        idle_timeout 1m;
        metadata_max_age 10m;
        partitioner murmur2;
        auto_create_topics off;
        max_topics 10;
        api_versions produce=3-8 metadata=1-9;
    }
    kafka_cluster other { bootstrap_servers 127.0.0.1:9; acks 1; max_in_flight 20; idempotence off; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- response_body_like: message sent



=== TEST 72: request_timeout of its own accord stays under a short delivery_timeout
--- http_config
    kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; delivery_timeout 2s; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- response_body_like: message sent



=== TEST 73: nothing of Kafka but the module
--- http_config
# none
--- config
    location /t { return 200 "fine\n"; }
--- request
GET /t
--- response_body
fine
