#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# kill -9 at every step of a vGPU's life: of its engine, a render worker, QEMU, libvirtd, and of several at
# once. After each, the host must be sane, red must have gone on computing, and blue must compute again.
# `make check-system` runs the marked cases, VGPU_SOAK=1 all.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Kill;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $blue->{vgpu};
my $work = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --pause 1000');
$work->expect(qr/^OK round 1:/m, 120);
my $free = VGPU::Host::ledger();

# The parts of each step: its precondition, the operation, and the moment of the kill.
my $attach = "virsh attach-device blue /dev/stdin --live <<'XML'\n" . VGPU::Tenant::hostdev_xml($vgpu->{uuid}) . "XML\n";
my $detach = $attach =~ s/attach-device/detach-device/r;
my %steps = (
    attach => { attached => 0, begin => $attach, moment => 'device=open*' },
    probe => { attached => 0, begin => $attach, moment => 'device=running*' },
    use => { attached => 1, begin => ':', moment => 0.5, computing => 1 },
    detach => { attached => 1, begin => $detach, moment => 'device=[oc]*' },
);

# Step, victims, and whether `make check-system` runs it.
my @cases = (
    [attach => 'engine', 1],
    [attach => 'qemu'],
    [attach => 'libvirtd'],
    [attach => 'engine qemu', 1],
    [attach => 'engine qemu libvirtd'],
    [probe => 'engine', 1],
    [probe => 'qemu'],
    [probe => 'libvirtd'],
    [probe => 'engine qemu libvirtd'],
    [use => 'worker', 1],
    [use => 'libvirtd'],
    [use => 'engine'],
    [use => 'qemu'],
    [use => 'engine libvirtd'],
    [use => 'worker qemu libvirtd'],
    [use => 'engine qemu libvirtd', 1],
    [detach => 'engine', 1],
    [detach => 'qemu'],
    [detach => 'libvirtd'],
    [detach => 'engine qemu'],
    [detach => 'engine qemu libvirtd'],
);

# Starts blue if it is not running; returns whether it had to.
sub start_blue {
    return 0 if $blue->state eq 'running';
    $blue->destroy;
    VGPU::Host::wait_state($vgpu, qr/device=closed/, 30);
    VGPU::Tenant::start($blue);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    return 1;
}

# blue up, whatever the last case left of it, its vGPU in it or not.
sub prepare {
    my ($attached) = @_;
    start_blue();
    my $has = $blue->has($vgpu);
    $blue->attach($vgpu) if $attached && !$has;
    $blue->detach($vgpu) if !$attached && $has;
    VGPU::Host::wait_state($vgpu, qr/device=closed engine=ready/) if !$attached;
    return;
}

# The verdict on a program that computed meanwhile: without engine or QEMU it fails, and is not wrong.
sub judge {
    my ($job, %dead) = @_;
    if (!$dead{engine} && !$dead{worker} && !$dead{qemu}) {
        my $seen = keeps_computing($job, 2, 120);
        return "went on: $seen; " . VGPU::Compute::stop_right($blue, $job);
    }
    if ($dead{qemu}) {
        $job->stop;
        return 'gone with its VM';
    }
    $job->wait(120, fail => 1);
    return VGPU::Compute::must_have_failed($job);
}

# If libvirtd dies after QEMU has got the device, and before it has recorded that, it does not know of it
# afterwards. The remedy is to tell QEMU.
sub take_unknown_back {
    return if $blue->has($vgpu) || $vgpu->attribute('state') =~ /device=closed/;
    VGPU::Lab::host("virsh qemu-monitor-command blue --hmp 'device_del hostdev0'");
    VGPU::Host::wait_state($vgpu, qr/device=closed/, 90);
    return 'device_del';
}

# Brings blue back by an operator's means: VM started, driver rebound, vGPU attached. Returns what was
# needed.
sub recover {
    my (%dead) = @_;
    my @took;
    VGPU::Host::wait_libvirt();
    # libvirtd considers a VM running until it has noticed the end of its QEMU.
    VGPU::Lab::host(q{timeout 60 sh -c 'while [ "$(virsh domstate blue)" = running ]; do sleep 0.2; done'})
        if $dead{qemu};
    push @took, 'VM started' if start_blue();
    $vgpu->wait_engine;
    push @took, take_unknown_back();
    if (!$blue->has($vgpu)) {
        $blue->attach($vgpu);
        push @took, 'attached';
    } elsif ($dead{engine}) {
        $blue->rebind($vgpu);
        push @took, 'rebound';
    } else {
        $blue->find_gpu($vgpu);
    }
    return @took ? 'took: ' . join(', ', @took) : 'took nothing';
}

sub one_case {
    my ($step, @victims) = @_;
    my $what = $steps{$step};
    my %dead = map { $_ => 1 } @victims;
    prepare($what->{attached});
    my $job;
    if ($what->{computing}) {
        $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu), '--forever --size 65536 --iterations 100000 --timeout 60');
        $job->expect(qr/^OK round 1:/m, 120);
    }
    my $qemu = VGPU::Lab::host('cat /run/libvirt/qemu/blue.pid');
    my $seen = VGPU::Kill::in_the_middle($vgpu, 'blue', $what->{begin}, $what->{moment}, @victims);
    VGPU::Lab::hang_up('blue') if $dead{qemu};
    $seen .= judge($job, %dead) . "\n" if $job;
    $seen .= recover(%dead) . "\n";
    die "QEMU was not killed, and is another one\n"
        if !$dead{qemu} && VGPU::Lab::host('cat /run/libvirt/qemu/blue.pid') ne $qemu;
    $seen .= computes($blue);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $vgpu);
    return $seen . "\nred: " . keeps_computing($work, 1);
}

for my $case (@cases) {
    my ($step, $victims, $in_check) = @$case;
    next if !$in_check && !$ENV{VGPU_SOAK};
    point("$step, kill -9 of $victims", sub { one_case($step, split ' ', $victims) });
}

point('red has never had a wrong value', sub {
    return VGPU::Compute::stop_right($red, $work);
});

done_testing();
