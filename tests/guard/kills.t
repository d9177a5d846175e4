#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Render workers are killed under Mesa's own client, which learns of its work's end in every possible way and checks
# each result: it may fail, hang up or be aborted, and must never take wrong data for right. KILLS=N: number of kills.
# GUARD_MESA=DIR: the clients use the Mesa of that tree.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use Test::More;
use Time::HiRes 'sleep';

my $kills = $ENV{KILLS} // 4;
my $wrong = 3; # JOB_WRONG of tests/guest/job.h
# The same moments each time.
srand 1;

# Mesa reads memory of the GPU for the end of work, or asks its render worker.
my @ways = ({}, { VN_PERF => 'no_fence_feedback,no_semaphore_feedback,no_event_feedback' });

# How a client whose worker was killed ended.
sub kill_one {
    my ($guard, $number) = @_;
    my $client = client("client$number", $ways[$number % @ways], 'build/guest/vk-waits', '--forever', '--size=1048576',
        '--timeout=40', "--seed=$number");
    return 'never began: ' . output($client) if !within(100, sub { output($client) =~ /^OK round 3:/m || ended($client) });
    sleep rand 0.5;
    kill 'KILL', worker($guard->{pid}) // return 'has no worker';
    my $status = finish($client, 60);
    diag(output($client)) if $status >> 8 == $wrong;
    return 'hangs' if $status == -1;
    return $status & 127 ? 'signal ' . ($status & 127) : 'status ' . ($status >> 8);
}

my $guard = start_guard();
sleep 0.5;
my $descriptors = descriptors($guard->{pid});
my %ends;
$ends{ kill_one($guard, $_) }++ for 1 .. $kills;
note("$ends{$_} times: $_") for sort keys %ends;
is($ends{"status $wrong"} // 0, 0, "$kills render workers killed: never wrong data as a success");
is($ends{'status 0'} // 0, 0, 'nor an end as if all was well');
is(scalar(grep { /hang|never|has no/ } keys %ends), 0, 'each client was killed at work, and ended') or diag(explain \%ends);
ok(nothing_left($guard, $descriptors), 'they leave nothing behind');
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'the guard ends when it is told to');
done_testing();
