#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The GPU is removed under its vGPUs, by unbinding its driver and by removing the device, while one guest
# computes and the other, suspended, ignores the request to release it. It comes back, and so do the vGPUs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my @vgpus = map { $_->{vgpu} } $red, $blue;
my $gpu = VGPU::Lab::gpu();
my $free = VGPU::Host::ledger();

# Waits until a command in L1 succeeds.
sub until_so {
    my ($command, $limit) = @_;
    return VGPU::Lab::host("timeout $limit bash -c 'until $command; do sleep 0.3; done'", timeout => $limit + 20);
}

# Both compute, blue is suspended, $go removes the GPU; red must fail and lose its vGPU, and blue's must
# stay until it is resumed. $come brings the GPU back.
sub gone_and_back {
    my ($what, $go, $come) = @_;
    my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --timeout 60');
    my $held = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever --timeout 60');
    $_->expect(qr/^OK round 1:/m, 120) for $job, $held;
    VGPU::Lab::host('virsh suspend blue');

    point("$what: it doesn't wait for the guests", sub {
        my $begin = time;
        VGPU::Lab::host($go, timeout => 60);
        return sprintf '%.1f s', time - $begin;
    });
    point("$what: red's program fails, and red gets rid of its vGPU", sub {
        until_so("! virsh dumpxml red | grep -q $red->{vgpu}{uuid}", 90);
        $job->wait(120, fail => 1);
        VGPU::Compute::must_have_failed($job, blank => 1, unplugged => 1);
        return (split /\n/, $job->output)[-1] . "\n" . $red->run('uptime');
    });
    point("$what: blue, which is suspended, keeps its vGPU; the driver says what it waits for", sub {
        my $log = VGPU::Lab::host("dmesg | grep 'in use by a VM' | grep $blue->{vgpu}{uuid} | tail -n 1");
        die "not a word\n" if $log !~ /asked it to release the device/;
        return $log;
    });
    point("$what: the GPU comes back, and can't be shared while blue holds what it had", sub {
        VGPU::Lab::host($come, timeout => 120);
        my $seen = VGPU::Lab::host("vgpu-registrar add $gpu 2>&1", fail => 1, timeout => 60);
        die "it was shared:\n$seen" if $VGPU::Command::status == 0;
        die $seen if $seen !~ /it has vGPUs from before/;
        return $seen;
    });
    point("$what: blue is resumed, lets go, and lives", sub {
        VGPU::Lab::host('virsh resume blue');
        until_so("! virsh dumpxml blue | grep -q $blue->{vgpu}{uuid}", 120);
        $held->wait(120, fail => 1);
        VGPU::Compute::must_have_failed($held, blank => 1, unplugged => 1);
        return $blue->run('uptime');
    });
    point("$what: the GPU is shared again, and both guests compute", sub {
        VGPU::Lab::host("systemctl restart vgpu-registrar\@$gpu.service", timeout => 120);
        for my $vm ($red, $blue) {
            until_so("[ -e /dev/vgpu/$vm->{vgpu}{uuid} ]", 60);
            $vm->{vgpu}->wait_engine;
            $vm->attach($vm->{vgpu});
        }
        my $seen = join "\n", map { computes($_) } $red, $blue;
        VGPU::Host::must_be_sane($free, @vgpus);
        return $seen;
    });
    return;
}

VGPU::Lab::host("mdevctl modify -u $_->{uuid} --auto") for @vgpus;
my $driver = '/sys/bus/pci/drivers/virtio-pci';
gone_and_back('driver unbound', "echo $gpu >$driver/unbind",
    "echo $gpu >$driver/bind; udevadm settle");
gone_and_back('device removed', "echo 1 >/sys/bus/pci/devices/$gpu/remove",
    'echo 1 >/sys/bus/pci/rescan; udevadm settle');

# The room of a vGPU with autostart stays reserved.
VGPU::Lab::host("mdevctl modify -u $_->{uuid} --manual") for @vgpus;
done_testing();
