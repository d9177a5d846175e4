#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Create, start, attach, compute, detach, remove, repeatedly: nothing is left behind. `make
# check-system` does 20 rounds, `make soak` many more (VGPU_ROUNDS).
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Count;
use VGPU::Host;
use VGPU::Test;

my $rounds = $ENV{VGPU_ROUNDS} // 20;
# A program takes longer than all the rest, so not every round has one.
my $compute_every = 10;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $vgpu = VGPU::Vgpu->new(77, $red->{vgpu}{type} =~ s/half$/sixteenth/r);
my $free = VGPU::Host::ledger();
$blue->detach($blue->{vgpu});

sub one_round {
    my ($compute) = @_;
    $vgpu->start($gpu);
    $vgpu->wait_engine;
    $blue->attach($vgpu);
    if ($compute) {
        my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu));
        VGPU::Compute::verdict($job->wait(120));
    }
    $blue->detach($vgpu);
    $vgpu->remove;
    return;
}

# Caches of every kind fill in the first rounds.
one_round(1) for 1 .. 2;
my $before = VGPU::Count::take('blue');
my ($done, $begin) = (0, time);

point("$rounds rounds of define, start, attach, detach, stop, undefine", sub {
    while ($done < $rounds) {
        one_round($done % $compute_every == 0);
        $done++;
        diag(sprintf '%d rounds, %.1f s each', $done, (time - $begin) / $done) if $done % 50 == 0;
    }
    return sprintf '%.1f s each', (time - $begin) / $done;
});

point('nothing is left behind', sub { VGPU::Count::compare($before, VGPU::Count::take('blue'), $done) });

point('the host is as it was, and both VMs compute', sub {
    $blue->attach($blue->{vgpu});
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return join "\n", map { computes($_) } $red, $blue;
});

done_testing();
