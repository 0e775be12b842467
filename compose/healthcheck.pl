#!/usr/bin/perl
# Exit status 0 when the edge beside it is alive and ready, 1 with the reason when it is not: for HEALTHCHECK in an image.
#
# Asks HAProxy's /readyz on the first address of EDGE_HEALTH_LISTEN and nothing else: what a ready edge can do without, such
# as its Valkey, must not have it restarted. Perl, because every Debian image has it and an HTTP client is in none.
use strict;
use warnings;
use IO::Socket::IP;

my $TIMEOUT = 2;
my %LOCAL = ('' => '127.0.0.1', '0.0.0.0' => '127.0.0.1', '::' => '::1');

sub unhealthy {
    print "not ready: $_[0]\n";
    exit 1;
}

my ($first) = split /,/, ($ENV{EDGE_HEALTH_LISTEN} || ':8081');
$first =~ /^\s*(?:\[([^\]]*)\]|([^:]*)):(\d+)\s*$/ or unhealthy("EDGE_HEALTH_LISTEN is \"$first\", no address:port");
my ($host, $port) = ($1 // $2, $3);

$SIG{ALRM} = sub { unhealthy("no answer on port $port within $TIMEOUT s") };
alarm $TIMEOUT;
my $socket = IO::Socket::IP->new(PeerHost => $LOCAL{$host} // $host, PeerPort => $port, Type => SOCK_STREAM)
    or unhealthy("nothing listens on port $port: $@");
print $socket "GET /readyz HTTP/1.0\r\n\r\n";
my $answer = do { local $/; <$socket> } // '';
my ($status) = $answer =~ m{^HTTP/1\.[01] (\d{3}) };
unhealthy("what answers on port $port is not HTTP") unless defined $status;
$answer =~ s/^.*?\r?\n\r?\n//s;
$answer =~ s/[^ -~]+//g;
unhealthy(substr "status $status, $answer", 0, 200) unless $status eq '200';
print "ready\n";
