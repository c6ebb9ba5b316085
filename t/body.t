# The request body is the record's value, byte for byte, however it arrives. HTTP/2: e2e/http2.py.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

# Neither end is white space: Test::Nginx trims that.
our $All = join '', map { chr } 0 .. 255;
sub bytes { my $size = shift; return substr $All x (1 + $size / 256), 0, $size - 1 }
our $K16 = bytes(16 * 1024) . "\xff";
our $K16p1 = bytes(16 * 1024 + 1) . "\xff";
our $K300 = bytes(300_000) . "\xff";

sub chunked {
    my ($body, $size) = @_;
    return join '', map({ sprintf("%x\r\n%s\r\n", length $_, $_) } unpack "(a$size)*", $body), "0\r\n\r\n";
}
sub head { "POST /t HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" . join('', map { "$_\r\n" } @_) . "\r\n" }

NginxKafka::prepare();
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: every byte
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n$::All"
--- records eval
{ value => $::All }



=== TEST 2: a body of exactly the buffer
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n$::K16"
--- records eval
{ value => $::K16 }



=== TEST 3: one byte more than the buffer goes through a file
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n$::K16p1"
--- error_log
buffered to a temporary file
--- records eval
{ value => $::K16p1 }



=== TEST 4: 300 KB through a file
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n$::K300"
--- error_log
buffered to a temporary file
--- records eval
{ value => $::K300 }



=== TEST 5: 300 KB in memory
--- config
    location /t { client_body_buffer_size 512k; kafka_pass main; kafka_topic t1; }
--- request eval
"POST /t\n$::K300"
--- no_error_log
buffered to a temporary file
[alert]
--- records eval
{ value => $::K300 }



=== TEST 6: 300 KB to several topics
--- config
    location /t { kafka_pass main; kafka_topic t1,t2; }
--- request eval
"POST /t\n$::K300"
--- records eval
[[{ value => $::K300 }, { value => $::K300 }]]



=== TEST 7: chunked
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . ::chunked($::All, 100)
--- records eval
{ value => $::All }



=== TEST 8: chunked, one byte each
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . ::chunked($::K16p1, 1)
--- records eval
{ value => $::K16p1 }



=== TEST 9: chunked, 300 KB through a file
--- config
    location /t { client_body_buffer_size 1k; kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . ::chunked($::K300, 7777)
--- records eval
{ value => $::K300 }



=== TEST 10: Expect: 100-continue
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Expect: 100-continue', 'Content-Length: 9') . 'expecting'
--- error_code: 100
--- response_body_like: \AHTTP/1.1 200 OK.*"message":"message sent"
--- records eval
{ value => 'expecting' }



=== TEST 11: HTTP/1.0
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
"POST /t HTTP/1.0\r\nContent-Length: 4\r\n\r\nv1.0"
--- records eval
{ value => 'v1.0' }



=== TEST 12: white space and line ends stay
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Content-Length: 8') . " \r\n\ta\n\0 "
--- records eval
{ value => " \r\n\ta\n\0 " }



=== TEST 13: the bodies of one connection do not mix
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- pipelined_requests eval
["POST /t\nfirst", "POST /t\n" . "b" x 40000, "POST /t", "POST /t\nlast"]
--- records eval
[{ value => 'first' }, { value => 'b' x 40000 }, { value => '' }, { value => 'last' }]



=== TEST 14: empty, Content-Length: 0
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
--- more_headers
Content-Length: 0
--- records eval
{ value => '', key => undef }



=== TEST 15: empty, chunked with the last chunk only
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . "0\r\n\r\n"
--- records eval
{ value => '' }



=== TEST 16: empty, no header tells of a body
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
--- records eval
{ value => '' }



=== TEST 17: kafka_empty_body null, Content-Length: 0
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_empty_body null; }
--- request
POST /t
--- more_headers
Content-Length: 0
--- records eval
{ value => undef }



=== TEST 18: kafka_empty_body null, chunked
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_empty_body null; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . "0\r\n\r\n"
--- records eval
{ value => undef }



=== TEST 19: kafka_empty_body null, no header, and it leaves other bodies alone
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_empty_body null; }
--- pipelined_requests eval
["POST /t", "POST /t\nfull"]
--- records eval
[{ value => undef }, { value => 'full' }]



=== TEST 20: kafka_empty_body reject
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_empty_body reject; }
--- pipelined_requests eval
["POST /t", "POST /t\nfull"]
--- error_code eval
[400, 200]
--- response_body_like eval
['\A\{"message":"Bad Request","error":"[^"]*empty[^"]*"\}', 'message sent']



=== TEST 21: kafka_empty_body reject, chunked
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_empty_body reject; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . "0\r\n\r\n"
--- error_code: 400
--- response_body_like: empty



=== TEST 22: kafka_value none is a tombstone, whatever the body
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_value none; kafka_key $arg_k; }
--- pipelined_requests eval
["POST /t?k=gone\nignored", "DELETE /t?k=gone2"]
--- records eval
[{ value => undef, key => 'gone' }, { value => undef, key => 'gone2' }]



=== TEST 23: a body cut off produces nothing
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Content-Length: 100') . 'cut-off-23'
--- abort
--- timeout: 0.3
--- ignore_response
--- wait: 0.1



=== TEST 24: client_body_in_file_only
--- config
    location /t { client_body_in_file_only clean; kafka_pass main; kafka_topic t1; }
--- pipelined_requests eval
["POST /t\nsmall", "POST /t", "POST /t\n$::K16p1"]
--- records eval
[{ value => 'small' }, { value => '' }, { value => $::K16p1 }]



=== TEST 25: a chunked body over client_max_body_size
--- config
    location /t { client_max_body_size 10k; kafka_pass main; kafka_topic t1; }
--- raw_request eval
::head('Transfer-Encoding: chunked') . ::chunked('q' x 20000, 1000)
--- error_code: 413
--- response_body_like: <title>413
--- error_log
client intended to send too large chunked body



=== TEST 26: a gzip filter behind the answer
--- config
    location /t { gzip on; gzip_min_length 1; gzip_types application/json; kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- more_headers
Accept-Encoding: gzip
--- response_headers
Content-Encoding: gzip
--- response_body_like: \A\x1f\x8b
