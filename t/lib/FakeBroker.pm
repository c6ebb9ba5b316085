package FakeBroker;

# Starts t/tools/fake_broker.py with the brokers named in `use FakeBroker qw(http closes)` and sets
# TEST_NGINX_FAKE_HTTP, TEST_NGINX_FAKE_CLOSES, … to their ports. They end with this process, whose
# death closes their standard input.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IPC::Open2 qw(open2);

my ($pid, $in, $out);

sub import {
    my ($class, @names) = @_;
    return unless @names;
    my $tools = abs_path(dirname(__FILE__) . '/../tools');
    $pid = open2($out, $in, 'python3', "$tools/fake_broker.py", @names);
    while (<$out>) {
        my ($name, $port) = split;
        last unless $name;
        $ENV{ 'TEST_NGINX_FAKE_' . uc $name } = $port;
    }
}

END { if ($pid) { my $status = $?; close $in; waitpid $pid, 0; $? = $status } }

1;
