#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What a launch costs in instructions, as make bench-cuda counts them: in the door, and by a worker at both ends; and what a
# question costs that is answered without the worker.
use strict;
use warnings;

use JSON::PP ();
use Test::More;

my %budgets = ('launch-free-instructions' => 300, 'remote-launch-guest' => 400, 'remote-launch-worker' => 500,
    'remote-context' => 120, 'remote-pointer' => 200, 'remote-device' => 400, 'remote-stream' => 480);

sub slurp { my ($file) = @_; local $/ = undef; open my $in, '<', $file or BAIL_OUT("$file: $!"); return <$in> }

my $file = 'build/bench/cuda.json';
unlink $file;
is(system('tests/bench/cuda/run', '--inside', '--only', join(',', sort keys %budgets)), 0, 'instructions of each call are counted');
my %seen = map { ($_->{row} => $_->{value}) } @{ JSON::PP::decode_json(slurp($file))->{rows} };
for my $row (sort keys %budgets) {
    cmp_ok($seen{$row} // 'inf', '<=', $budgets{$row}, "$row: within its budget");
    cmp_ok($seen{$row} // 0, '>', 10, "$row: it was counted at all");
}
done_testing();
