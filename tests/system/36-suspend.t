#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The host suspends and resumes while guests compute and while one starts. It goes as far as the kernel's own test of the
# freezer does (pm_test): every process stops, and goes on after some seconds. Devices do not suspend
# in it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();

# The kernel says when it cannot freeze something, and then does not suspend.
sub suspends {
    my ($times) = @_;
    return <<"SH";
set -e
echo freezer >/sys/power/pm_test
trap 'echo none >/sys/power/pm_test' EXIT
for n in \$(seq $times); do echo freeze >/sys/power/state; sleep 1; done
SH
}

sub losses { return join ' ', map { $_->{vgpu}->attribute('engine_losses') } $red, $blue }
sub engines { return join ' ', map { $_->{vgpu}->engine_pid } $red, $blue }

my ($engines, $losses, $ledger) = (engines(), losses(), VGPU::Host::ledger());
my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever') } $red, $blue;
$_->expect(qr/^OK round 2:/m, 200) for @jobs;

point('two guests compute; the host suspends three times', sub {
    VGPU::Lab::host(suspends(3), timeout => 120);
    my @before = map { VGPU::Compute::rounds($_) } @jobs;
    $_->expect(qr/^OK round @{[ 2 + VGPU::Compute::rounds($_) ]}:/m, 200) for @jobs;
    return 'they went on after rounds ' . join ', ', @before;
});
point('every result is right', sub { return VGPU::Compute::stop_right($red, $jobs[0]) . '; ' . VGPU::Compute::stop_right($blue, $jobs[1]) });
point('the engines are the same, and nothing was lost', sub {
    die "engines $engines became " . engines() . "\n" if engines() ne $engines;
    die "losses $losses became " . losses() . "\n" if losses() ne $losses;
    return "engines $engines";
});
point('a VM is reset and boots while the host suspends five times', sub {
    my $suspends = VGPU::Lab::host_job(suspends(5));
    $blue->reset;
    $suspends->wait(200);
    $blue->wait_up;
    $blue->find_gpu($blue->{vgpu});
    return computes($blue);
});
point('vgpud and the arbiter answer', sub {
    my $list = VGPU::Lab::host('vgpuctl vgpu list --no-headers', timeout => 60);
    die "two vGPUs should be here:\n$list" if (() = $list =~ /ready/g) != 2;
    VGPU::Host::must_be_sane($ledger, map { $_->{vgpu} } $red, $blue);
    return computes($red);
});
done_testing();
