# How the directives inherit, and how the handler gets along with the rest of nginx.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

our $Cluster = "$NginxKafka::CLUSTER\n";

NginxKafka::prepare();
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: http, server and location
--- http_config eval
$::Cluster . 'kafka_topic t1; kafka_key from-http; kafka_header h http; kafka_success_status 201;'
--- config
    kafka_key from-server;
    kafka_header s server;
    location /a { kafka_pass main; }
    location /b { kafka_pass main; kafka_topic t2; kafka_key from-location; kafka_header l location; kafka_success_status 200; }
--- pipelined_requests eval
["POST /a\nx", "POST /b\nx"]
--- error_code eval
[201, 200]
--- records eval
[{ topic => 't1', key => 'from-server', headers => 's=server' }, { topic => 't2', key => 'from-location', headers => 'l=location' }]



=== TEST 2: arrays are inherited whole where the level has none of its own
--- http_config eval
$::Cluster . 'kafka_header a 1; kafka_header b 2; kafka_allowed_topics t1 t2; kafka_topic $arg_t;'
--- config
    location /t { kafka_pass main; }
    location /own { kafka_pass main; kafka_allowed_topics ev-a; }
--- pipelined_requests eval
["POST /t?t=t1\nx", "POST /own?t=t1\nx", "POST /own?t=ev-a\nx"]
--- error_code eval
[200, 403, 200]
--- records eval
[{ headers => 'a=1,b=2' }, undef, { headers => 'a=1,b=2' }]



=== TEST 3: every other directive at the level of the server
--- config
    kafka_topic t1;
    kafka_methods POST;
    kafka_timestamp 1000;
    kafka_partition 0;
    kafka_value none;
    kafka_async off;
    kafka_error_detail on;
    kafka_ignore_client_abort off;
    location /t { kafka_pass main; }
    location /body { kafka_pass main; kafka_value body; kafka_methods PUT; kafka_empty_body null; kafka_timestamp ""; }
--- pipelined_requests eval
["POST /t\nx", "PUT /t\nx", "PUT /body\nvalue", "PUT /body"]
--- error_code eval
[200, 405, 200, 200]
--- records eval
[{ value => undef, timestamp => 1000 }, undef, { value => 'value', timestamp => sub { $_[0] > 1e12 } }, { value => undef }]



=== TEST 4: a nested location does not inherit kafka_pass, but the rest
--- config
    location /t {
        kafka_pass main;
        kafka_topic t1;
        location /t/files { return 200 "files\n"; }
        location /t/again { kafka_pass main; }
    }
--- pipelined_requests eval
["POST /t\nouter", "POST /t/files\nx", "POST /t/again\nnested"]
--- response_body_like eval
['message sent', 'files', 'message sent']
--- records eval
[{ value => 'outer' }, undef, { topic => 't1', value => 'nested' }]



=== TEST 5: if changes the topic through a variable, the handler stays
--- config
    location /t {
        set $t t1;
        kafka_pass main;
        kafka_topic $t;
        kafka_allowed_topics t1 t2;
        kafka_key k;
        if ($arg_x) { set $t t2; }
        if ($arg_y) { set $z 1; }
    }
--- pipelined_requests eval
["POST /t\nx", "POST /t?x=1\nx", "POST /t?y=1\nx"]
--- records eval
[{ topic => 't1', key => 'k' }, { topic => 't2', key => 'k' }, { topic => 't1', key => 'k' }]



=== TEST 6: kafka_pass in if only
--- config
    location /t {
        kafka_topic t1;
        if ($request_method = POST) { kafka_pass main; }
        return 200 "not kafka\n";
    }
    location /u {
        kafka_topic t1;
        default_type text/plain;
        if ($arg_k) { kafka_pass main; }
    }
--- pipelined_requests eval
["POST /u?k=1\nin if", "GET /u"]
--- error_code eval
[200, 404]
--- records eval
[{ value => 'in if' }, undef]



=== TEST 7: limit_except
--- config
    location /t {
        kafka_pass main;
        kafka_topic t1;
        limit_except POST { deny all; }
    }
    location /u {
        kafka_pass main;
        kafka_topic t1;
        limit_except POST { allow all; }
    }
--- pipelined_requests eval
["POST /t\nallowed", "PUT /t\nx", "PUT /u\nalso allowed"]
--- error_code eval
[200, 403, 200]
--- records eval
[{ value => 'allowed' }, undef, { value => 'also allowed' }]



=== TEST 8: error_page keeps the method for a named location
--- config
    error_page 404 @kafka;
    location /t { return 404; }
    location @kafka { kafka_pass main; kafka_topic t1; }
--- request
POST /t
by error_page
--- error_code: 404
--- records eval
{ value => 'by error_page' }



=== TEST 9: error_page to an ordinary location turns the method into GET
--- config
    error_page 404 = /kafka;
    location /t { return 404; }
    location /kafka { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- error_code: 405



=== TEST 10: the module's own errors do not go to error_page
--- config
    error_page 404 /missing;
    location /t { kafka_pass main; kafka_topic nosuch; }
    location /missing { return 200 "the page\n"; }
--- request
POST /t
x
--- error_code: 404
--- response_body_like: topic does not exist



=== TEST 11: mirror
--- config
    location /t { mirror /copy; kafka_pass main; kafka_topic t1; }
    location = /copy { internal; kafka_pass main; kafka_topic t2; kafka_key mirrored; }
--- request
POST /t
mirror-11
--- records eval
{ topic => 't1', value => 'mirror-11' }
--- queued eval
{ topic => 't2', value => 'mirror-11', key => 'mirrored' }



=== TEST 12: kafka_pass before kafka_cluster
--- http_config
    server {
        listen $TEST_NGINX_SERVER_PORT;
        server_name early;
        location /t { kafka_pass late; kafka_topic t1; }
    }
    kafka_cluster late { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; }
--- config
    location /x { kafka_pass late; kafka_topic t1; }
--- request
POST /t
early
--- more_headers
Host: early
--- records eval
{ value => 'early' }



=== TEST 13: rewrite and internal redirects
--- config
    rewrite ^/old/(.*)$ /t/$1 last;
    location /t { kafka_pass main; kafka_topic t1; kafka_key $uri; }
    location /i { try_files /nothing /t/tried; }
--- pipelined_requests eval
["POST /old/x\nrewritten", "POST /i\ntried"]
--- records eval
[{ value => 'rewritten', key => '/t/x' }, { value => 'tried', key => '/t/tried' }]



=== TEST 14: two clusters are two producers
--- http_config
    kafka_cluster a { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; }
    kafka_cluster b { bootstrap_servers $TEST_NGINX_DEAD_BROKER; delivery_timeout 500ms; request_timeout 250ms; }
--- config
    location /a { kafka_pass a; kafka_topic t1; }
    location /b { kafka_pass b; kafka_topic t1; }
--- pipelined_requests eval
["POST /a\nx", "POST /b\nx", "POST /a\ny"]
--- error_code eval
[200, 503, 200]
--- timeout: 5



=== TEST 15: two clusters, one Kafka
--- http_config
    kafka_cluster a { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; client_id one; }
    kafka_cluster b { bootstrap_servers localhost:$TEST_NGINX_KAFKA_PORT; client_id two; acks 1; }
--- config
    location /a { kafka_pass a; kafka_topic t1; }
    location /b { kafka_pass b; kafka_topic t1; }
--- pipelined_requests eval
["POST /a\nfrom a", "POST /b\nfrom b"]
--- records eval
[{ value => 'from a' }, { value => 'from b' }]



=== TEST 16: the content handler runs after access checks
--- config
    location /t { deny all; kafka_pass main; kafka_topic t1; }
--- request
POST /t
denied-16
--- error_code: 403
--- response_body_like: <title>403 Forbidden
--- not_produced eval
{ topic => 't1', value => 'denied-16' }



=== TEST 17: a slash at the end and exact locations
--- config
    location = /t { kafka_pass main; kafka_topic t1; }
    location /dir/ { kafka_pass main; kafka_topic t2; }
--- pipelined_requests eval
["POST /t\nexact", "POST /dir/\nslash"]
--- records eval
[{ topic => 't1' }, { topic => 't2' }]



=== TEST 18: auth_request
--- config
    location /t { auth_request /audit; error_page 404 = @done; root html/nothing; }
    location @done { return 200 "done\n"; }
    location = /audit { internal; kafka_pass main; kafka_topic t2; kafka_key $request_uri; kafka_methods GET POST; }
--- request
GET /t?audit-18
--- response_body
done
--- error_log
No such file or directory
--- queued eval
{ topic => 't2', value => '', key => '/t?audit-18' }



=== TEST 19: two records in one request of a subrequest and its parent
--- config
    location /t { mirror /copy; mirror /copy; kafka_pass main; kafka_topic t1,t2; }
    location = /copy { internal; kafka_pass main; kafka_topic ev-a,ev-b; kafka_async on; }
--- request
POST /t
twice-19
--- records eval
[[{ topic => 't1', value => 'twice-19' }, { topic => 't2', value => 'twice-19' }]]
