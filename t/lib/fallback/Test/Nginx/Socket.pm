package Test::Nginx::Socket;

# A small stand-in for CPAN's Test::Nginx::Socket on Debian's libtest-base-perl: it reads the same
# data format, and only the sections that %SECTIONS names. NginxKafka puts it at the end of @INC, so
# the genuine one is used wherever it can be found.
#
# Differences on purpose: nginx runs in the foreground on a free port in a directory of its own (files
# can run side by side), the whole error log of a block is checked after nginx has left, and leaving
# with anything but 0 fails the block.

use strict;
use warnings;
use Test::Base -Base;
use Errno qw(EAGAIN EINTR);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(add_block_preprocessor add_cleanup_handler add_response_body_check check_accum_error_log env_to_nginx
    log_level master_on no_long_string no_root_location no_shuffle repeat_each run_tests
    server_port workers worker_connections);

our %SECTIONS;
$SECTIONS{$_} = 1 for qw(abort access_log config error_code error_code_like error_log
    grep_error_log grep_error_log_out http_config ignore_response init log_level main_config
    more_headers must_die name no_access_log no_error_log pipelined_requests raw_request
    raw_response_headers_like raw_response_headers_unlike request response_body response_body_like
    response_body_unlike response_headers shutdown skip_nginx timeout user_files wait);

my ($log_level, $workers, $connections, $root_location) = ('debug', 1, 64, 1);
my (@preprocessors, @body_checks, @cleanups, $running, $dir);
my $valgrind = $ENV{TEST_NGINX_USE_VALGRIND};
my $patience = $valgrind ? 20 : 1;
my $port = $ENV{TEST_NGINX_SERVER_PORT} ||= free_port();

# A test that dies must not leave nginx behind; one that is killed has the parent-death signal.
END {
    my $status = $?;
    if ($running) { kill 'KILL', -$running; waitpid $running, 0 }
    $_->() for splice @cleanups;
    $? = $status;
}

sub add_block_preprocessor (&) { unshift @preprocessors, shift }
sub add_cleanup_handler ($) { unshift @cleanups, shift }
sub add_response_body_check ($) { push @body_checks, shift }
sub check_accum_error_log () { }
sub env_to_nginx (@) { }
sub log_level ($) { $log_level = shift }
sub master_on () { }
sub no_long_string () { }
sub no_root_location () { $root_location = 0 }
sub no_shuffle () { }
sub repeat_each (@) { 1 }
sub server_port () { $port }
sub workers (@) { $workers = shift if @_; $workers }
sub worker_connections (@) { $connections = shift if @_; $connections }

sub free_port () {
    my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "no port: $!";
    return $socket->sockport;
}

sub slurp ($) {
    open my $file, '<:raw', shift or return '';
    local $/;
    return scalar(<$file>) // '';
}

sub expand ($) {
    my $text = shift // '';
    $text =~ s/\$(TEST_NGINX_[A-Z0-9_]+)/$ENV{$1} \/\/ die "$1 is not set"/ge;
    return $text;
}

# nginx

sub write_files ($) {
    my $block = shift;
    make_path("$dir/conf", "$dir/logs", "$dir/html");
    if (my $files = $block->user_files) {
        my ($first, %content) = split /^>>>\s+(\S+)[^\n]*\n/m, $files;
        for my $name (keys %content) {
            (my $parent = "$dir/html/$name") =~ s{/[^/]*\z}{};
            make_path($parent);
            open my $file, '>:raw', "$dir/html/$name" or die "$name: $!";
            print $file $content{$name};
        }
    }
    my $temp = join ' ', map { "${_}_temp_path $dir/$_;" } qw(client_body proxy fastcgi scgi uwsgi);
    my $level = $block->log_level // $log_level;
    my $root = $root_location ? 'location / { root html; }' : '';
    my ($main, $http, $server) = map { expand($block->$_) } qw(main_config http_config config);
    open my $conf, '>:raw', "$dir/conf/nginx.conf" or die "nginx.conf: $!";
    print $conf <<"END";
worker_processes $workers;
daemon off;
error_log $dir/logs/error.log $level;
pid $dir/logs/nginx.pid;
$main
http {
    access_log $dir/logs/access.log;
    $temp
    default_type text/plain;
    keepalive_timeout 68;
$http
    server {
        listen $port;
        server_name localhost;
        client_max_body_size 30M;
$server
        $root
    }
}
events { accept_mutex off; worker_connections $connections; }
@{[$> ? '' : 'user root;']}
END
    close $conf or die "nginx.conf: $!";
}

sub nginx_binary () { $ENV{TEST_NGINX_BINARY} || 'nginx' }

my $version;
sub nginx_version () {
    return $version //= do {
        my $said = `@{[nginx_binary()]} -v 2>&1`;
        $said =~ m{/(\d+)\.(\d+)\.(\d+)} ? sprintf('%d.%03d%03d', $1, $2, $3) : 0;
    };
}

sub start () {
    my @command = (nginx_binary(), '-e', "$dir/logs/error.log", '-p', "$dir/", '-c', "$dir/conf/nginx.conf");
    unshift @command, 'valgrind', split ' ', $valgrind if $valgrind;
    my $parent = $$;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        POSIX::setpgid(0, 0);
        # PR_SET_PDEATHSIG, SIGTERM: a killed prove does not run our END.
        my %prctl = (x86_64 => 157, aarch64 => 167);
        my $number = $prctl{ (POSIX::uname())[4] };
        syscall $number, 1, 15, 0, 0, 0 if $number;
        POSIX::_exit(1) if getppid() != $parent;
        # Not prove's pipe: prove would wait for its end as long as nginx lives.
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', "$dir/stderr";
        exec @command or POSIX::_exit(127);
    }
    $running = $pid;
    for (1 .. 2000 * $patience) {
        if (waitpid($pid, POSIX::WNOHANG()) == $pid) { undef $running; return 0 }
        return 1 if IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
        sleep 0.005;
    }
    die 'nginx neither started nor left';
}

sub stop ($) {
    my $name = shift;
    kill 'QUIT', $running;
    my $end = time + 45 * $patience;
    until (waitpid($running, POSIX::WNOHANG()) == $running) {
        if (time > $end) {
            kill 'KILL', -$running;
            waitpid $running, 0;
            undef $running;
            return Test::More::fail("$name - nginx does not leave after QUIT");
        }
        sleep 0.005;
    }
    my $status = $?;
    undef $running;
    Test::More::is($status, 0, "$name - nginx leaves with 0");
}

# Requests

# The header lines that --- request adds, and what it trims, are Test::Nginx's.
sub build ($$$$) {
    my ($name, $text, $more, $last) = @_;
    my $chunked = ($more // '') =~ /^transfer-encoding:\s*chunked\s*$/mi;
    my @lines = grep { !/^\s*#/ } split /\n+/, $more // '';
    my ($first, $body) = split /\n/, $text, 2;
    $body //= '';
    $first =~ /^\s*(\S+)(?: +(\S+))?(?: +(\S+))? *$/ or die "$name - bad request line \"$first\"";
    my ($method, $uri, $protocol) = ($1, $2 // '/', $3 // 'HTTP/1.1');
    my @head = ("$method $uri $protocol");
    push @head, 'Host: localhost' unless grep { /^host:/i } @lines;
    push @head, 'Connection: ' . ($last ? 'close' : 'keep-alive') unless grep { /^connection/i } @lines;
    for my $line (@lines) {
        my ($key, $value) = split /:\s*/, $line, 2;
        push @head, "$key: " . ($value // '');
    }
    if (!$chunked && length $body && !grep { /^Content-Length:/ } @lines) {
        $body =~ s/^\s+|\s+$//gs;
        push @head, 'Content-Length: ' . length $body;
    }
    return join("\r\n", @head, '', '') . $body;
}

# One list of packets a connection; each packet is { value, delay_before }.
sub connections ($$) {
    my ($block, $name) = @_;
    my $raw = $block->raw_request;
    return [map { { value => $_ } } ref $raw ? @$raw : $raw] if defined $raw;
    my $more = $block->more_headers;
    my $more_of = sub { ref $more ? $more->[shift] : $more };
    if (my $pipelined = $block->pipelined_requests) {
        my $last = $#$pipelined;
        return [{ value => join '', map { build($name, expand($pipelined->[$_]), $more_of->($_), $_ == $last) } 0 .. $last }];
    }
    my $request = $block->request // die "$name - no request";
    if (!ref $request) {
        $request =~ s/^\s+//;
        return [{ value => build($name, $request, $more_of->(0), 1) }];
    }
    my $i = 0;
    return map {
        my @packets = map { ref $_ ? { %$_ } : { value => $_ } } ref $_ ? @$_ : $_;
        if (@packets == 1) {
            $packets[0]{value} = build($name, $packets[0]{value}, $more_of->($i), 1);
        } else {
            my $whole = build($name, join('', map { $_->{value} } @packets), $more_of->($i), 1);
            my $tail = join '', map { $_->{value} } @packets[1 .. $#packets];
            $packets[0]{value} = substr $whole, 0, length($whole) - length $tail;
        }
        $i++;
        \@packets;
    } @$request;
}

sub talk ($$$) {
    my ($block, $packets, $name) = @_;
    my $timeout = ($block->timeout // 3) * $patience;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or return '';
    $socket->blocking(0);
    local $SIG{PIPE} = 'IGNORE';
    my ($in, $out, $next, $both) = ('', '', 0, IO::Select->new($socket));
    while (1) {
        if (!length $out && $next < @$packets) {
            my $packet = $packets->[$next++];
            sleep $packet->{delay_before} if $packet->{delay_before};
            $out = $packet->{value};
        }
        my ($readable, $writable) = IO::Select->select($both, length $out ? $both : undef, undef, $timeout);
        if (!$readable) {
            Test::More::fail("$name - client socket timed out") unless defined $block->abort;
            last;
        }
        if (@$writable) {
            my $sent = syswrite $socket, $out, 65536;
            if ($sent) { substr $out, 0, $sent, '' }
            elsif ($! != EAGAIN && $! != EINTR) { $out = ''; $next = @$packets }
            if (!length $out && $next == @$packets && defined(my $how = $block->shutdown)) {
                shutdown $socket, $how =~ /\d/ ? $how : 1;
            }
        }
        if (@$readable) {
            my $got = sysread $socket, $in, 65536, length $in;
            last if defined $got && !$got || !defined $got && $! != EAGAIN && $! != EINTR;
        }
    }
    return $in;
}

sub unchunk ($) {
    my ($rest, $body) = (shift, '');
    while ($rest =~ s/\A([0-9a-fA-F]+)[^\r\n]*\r\n//) {
        my $size = hex $1;
        if (!$size) { $rest =~ s/\A\r\n//; return ($body, $rest) }
        $body .= substr $rest, 0, $size, '';
        $rest =~ s/\A\r\n//;
    }
    return ($body, $rest);
}

# (code, header block, body, bytes behind it)
sub parse_response ($$) {
    my ($raw, $is_head) = @_;
    my ($head, $rest) = split /\r\n\r\n/, $raw, 2;
    $head //= '';
    $rest //= '';
    my ($code) = $head =~ m{\AHTTP/\S+ (\d+)};
    return ($code, "$head\r\n", '', $rest) if $is_head;
    return ($code, "$head\r\n", unchunk($rest)) if $head =~ /^transfer-encoding:\s*chunked/mi;
    my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
    return ($code, "$head\r\n", $rest, '') unless defined $length;
    my $body = substr $rest, 0, $length, '';
    return ($code, "$head\r\n", $body, $rest);
}

# Checks

sub nth ($$$$) {
    my ($name, $value, $i, $several) = @_;
    die "$name - several requests need several expectations" if $several && ref $value ne 'ARRAY';
    return ref $value eq 'ARRAY' ? $value->[$i] : $value;
}

sub check_answer ($$$$$$) {
    my ($block, $name, $i, $several, $answer, $is_head) = @_;
    my ($code, $head, $body) = @$answer;
    my $expected = sub { my $section = shift; nth($name, $block->$section, $i, $several) };
    if (defined $block->error_code_like) {
        Test::More::like($code // '', qr/@{[$expected->('error_code_like')]}/sm, "$name - status");
    } else {
        Test::More::is($code // '', defined $block->error_code ? $expected->('error_code') : 200, "$name - status");
    }
    if (defined $block->raw_response_headers_like) {
        Test::More::like($head, qr/@{[$expected->('raw_response_headers_like')]}/s, "$name - raw headers like");
    }
    if (defined $block->raw_response_headers_unlike) {
        Test::More::unlike($head, qr/@{[$expected->('raw_response_headers_unlike')]}/s, "$name - raw headers unlike");
    }
    if (defined $block->response_headers) {
        for my $line (grep { /\S/ } split /\n/, $expected->('response_headers')) {
            if ($line =~ s/^\s*!\s*//) {
                Test::More::unlike($head, qr/^\s*\Q$line\E\s*:/mi, "$name - no header $line");
                next;
            }
            my ($key, $value) = split /\s*:\s*/, $line, 2;
            my $actual = join ', ', $head =~ /^\Q$key\E:[ \t]*([^\r\n]*)/mig;
            Test::More::is($actual, $value, "$name - header $key");
        }
    }
    if (defined $block->response_body) {
        my $want = $expected->('response_body');
        ref $want ? Test::More::like($body, $want, "$name - body") : Test::More::is($body, expand($want), "$name - body");
    }
    if (defined $block->response_body_like) {
        my $want = $expected->('response_body_like');
        Test::More::like($body, qr/$want/s, "$name - body like");
    }
    if (defined $block->response_body_unlike) {
        my $want = $expected->('response_body_unlike');
        Test::More::unlike($body, qr/$want/s, "$name - body unlike");
    }
    $_->($block, $body, $i, 0, 0) for @body_checks;
}

sub patterns ($) {
    my $value = shift;
    return ref $value eq 'ARRAY' ? grep { defined } @$value : ref $value ? $value : grep { length } split /\n+/, $value;
}

sub found ($$) {
    my ($log, $pattern) = @_;
    return grep { ref $pattern ? $_ =~ $pattern : index($_, $pattern) >= 0 } split /^/, $log;
}

sub check_log ($$$$) {
    my ($name, $log, $what, $wanted) = @_;
    for my $pattern (patterns($wanted)) {
        my $there;
        for (1 .. 100 * $patience) {
            last if ($there = found(slurp("$dir/logs/$log.log"), $pattern)) || !$running;
            sleep 0.01;
        }
        Test::More::ok($there, "$name - $what has \"$pattern\"");
    }
}

sub check_log_lacks ($$$) {
    my ($name, $log, $unwanted) = @_;
    for my $pattern (patterns($unwanted)) {
        my @lines = found(slurp("$dir/logs/$log.log"), $pattern);
        Test::More::ok(!@lines, "$name - $log.log lacks \"$pattern\"") or Test::More::diag(@lines);
    }
}

sub run_block ($) {
    my $block = shift;
    my $name = $block->name;
    if (defined $block->skip_nginx) {
        my ($op, @v) = $block->skip_nginx =~ /^\s*\d+\s*:\s*([<>]=?)\s*(\d+)\.(\d+)\.(\d+)/ or die "$name - skip_nginx";
        my $limit = sprintf '%d.%03d%03d', @v;
        my $skip = $op eq '<' ? nginx_version() < $limit : $op eq '<=' ? nginx_version() <= $limit
            : $op eq '>' ? nginx_version() > $limit : nginx_version() >= $limit;
        return Test::More::pass("$name - skipped for this nginx") if $skip;
    }
    $dir = tempdir("nginx-kafka-t-XXXXXX", TMPDIR => 1);
    write_files($block);
    my $up = start();
    if (defined $block->must_die) {
        Test::More::ok(!$up, "$name - nginx refuses to start");
        stop($name) if $up;
    } elsif (!$up) {
        Test::More::fail("$name - nginx starts");
        Test::More::diag(slurp("$dir/stderr"));
        return;
    } else {
        if (defined $block->init) { eval "package main; " . $block->init; die $@ if $@ }
        my $pipelined = ref $block->pipelined_requests ? @{ $block->pipelined_requests } : 0;
        my @connections = connections($block, $name);
        my $i = 0;
        for my $packets (@connections) {
            my $method = $packets->[0]{value} =~ /\A\s*HEAD / ? 1 : 0;
            my $raw = talk($block, $packets, $name);
            for (1 .. $pipelined || 1) {
                last if defined $block->ignore_response;
                my @answer = parse_response($raw, $method);
                check_answer($block, $name, $i, $pipelined || @connections > 1, \@answer, $method);
                $raw = $answer[3];
                $i++;
            }
        }
        sleep $block->wait if $block->wait;
    }
    check_log($name, 'access', 'access.log', $block->access_log) if defined $block->access_log;
    check_log($name, 'error', 'error.log', $block->error_log) if defined $block->error_log;
    if (defined $block->grep_error_log) {
        my $pattern = $block->grep_error_log;
        my $lines = join '', map { /$pattern/ ? "$&\n" : () } split /^/, slurp("$dir/logs/error.log");
        my $want = $block->grep_error_log_out;
        ref $want ? Test::More::like($lines, $want, "$name - grep_error_log") : Test::More::is($lines, $want, "$name - grep_error_log");
    }
    stop($name) if $running;
    check_log_lacks($name, 'access', $block->no_access_log) if defined $block->no_access_log;
    check_log_lacks($name, 'error', $block->no_error_log) if defined $block->no_error_log;
}

sub run_tests () {
    for my $block (blocks()) {
        $_->($block) for @preprocessors;
        my @unknown = grep { !$SECTIONS{$_} } @{ $block->_section_order };
        die $block->name . " - sections the runner does not know: @unknown\n" if @unknown;
        my $before = Test::More->builder->current_test;
        run_block($block);
        my @results = (Test::More->builder->summary)[$before .. Test::More->builder->current_test - 1];
        if (grep { !$_ } @results) {
            my @log = grep { !/\[debug\]/ } split /^/, slurp("$dir/logs/error.log");
            Test::More::diag($block->name, " - error.log:\n", @log > 25 ? @log[-25 .. -1] : @log);
        }
        remove_tree($dir);
    }
    $_->() for splice @cleanups;
}

1;
