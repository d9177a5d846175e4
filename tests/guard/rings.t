#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The real vgpu-guard on lavapipe, with a keeper: the end of a ring. Mesa destroys it and returns its memory at once, and
# the keeper empties that. 200 short programs one after another, and one whose threads each have a ring of their own.
# Not in `make unit`: it takes a minute.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use Test::More;
use Time::HiRes 'sleep';

my $guard = start_guard('--setenv=VGPU_GOVERNOR=1');
sleep 0.5;
my @bad = grep {
    my $job = client("short$_", {}, 'build/guest/vk-threads', '--rounds=1');
    finish($job, 100) != 0 && diag(output($job));
} 1 .. 200;
is(scalar(@bad), 0, 'of 200 short programs none is ended');

my $job = client('long', {}, 'build/guest/vk-threads', '--rounds=2000');
is(finish($job, 300), 0, 'nor is one of 4,000 threads') or diag(output($job));
is(scalar(() = output($guard) =~ /is dropped/g), 0, 'the guard drops nobody') or diag(output($guard));
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'it ends when it is told to');
done_testing();
