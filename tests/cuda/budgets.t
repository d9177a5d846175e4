#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What a launch costs in instructions, as make bench-cuda counts them: in the door, and by a worker at both ends; and what a
# question costs that is answered without the worker.
use strict;
use warnings;

use JSON::PP ();
use Test::More;

# Their goals are that program's.
my @rows = qw(launch-free-instructions launch-moves-instructions launch-metered-instructions remote-launch-guest remote-launch-worker remote-context
    remote-pointer remote-device remote-stream);

sub slurp { my ($file) = @_; local $/ = undef; open my $in, '<', $file or BAIL_OUT("$file: $!"); return <$in> }

my $file = 'build/bench/cuda.json';
unlink $file;
is(system('tests/bench/cuda/run', '--inside', '--only', join(',', @rows)), 0, 'instructions of each call are counted');
my %seen = map { ($_->{row} => $_) } @{ JSON::PP::decode_json(slurp($file))->{rows} };
for my $row (@rows) {
    my $is = $seen{$row} // { value => 0, goal => 'none' };
    ok($is->{met}, "$row: $is->{value} instructions, $is->{goal}");
    cmp_ok($is->{value}, '>', 5, "$row: it was counted at all");
}
done_testing();
