#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The engines' confinement, tried from inside: a program whose attempts must be refused runs in the
# engine's place in its unit, and as a render worker of an engine. Outside, the same attempts must
# succeed, so that each of them tests something.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Sandbox;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $type = $red->{vgpu}{type} =~ s/half$/sixteenth/r;
my $victim = VGPU::Vgpu->new(9, $type);
my $probe = $VGPU::Sandbox::probe;

# A vGPU whose unit is changed by the drop-in $change: the output of the program in it.
sub inside {
    my ($change) = @_;
    return VGPU::Sandbox::inside($victim->{unit}, $change, sub { $victim->start($gpu) }, sub { $victim->remove });
}

my $ready = point('the program is in place', sub { VGPU::Sandbox::prepare($red, $blue, $victim->{uuid}) });
VGPU::Sandbox::report('outside, as root', VGPU::Lab::host("$probe --outside 2>&1", fail => 1, timeout => 120)) if $ready;
VGPU::Sandbox::report('in the engine\'s place', inside("ExecStart=\nExecStart=$probe --engine")) if $ready;
VGPU::Sandbox::report('as a render worker', inside("BindReadOnlyPaths=$probe:$VGPU::Sandbox::server")) if $ready;

point('what the filter lets through is what systemd says', sub {
    my $calls = VGPU::Lab::host("systemctl show -P SystemCallFilter $red->{vgpu}{unit}");
    my @calls = split ' ', $calls;
    die "no filter: $calls\n" if @calls < 100;
    return scalar(@calls) . " system calls: $calls";
});

point('the other vGPUs have noticed nothing', sub {
    return join "\n", map { computes($_) } $red, $blue;
});

done_testing();
