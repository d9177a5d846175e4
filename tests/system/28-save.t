#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# VMs with a vGPU that are saved, by virsh: save and restore, managedsave, snapshots with memory. An idle GPU's guest
# notices nothing; a picture is there again; programs that use the GPU lose it, and new ones compute.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Saved;
use VGPU::Test;

my ($red, $blue) = baseline();
my $uuid = $blue->{vgpu}{uuid};
my $file = '/var/lib/libvirt/images/blue.save';
my $vm = VGPU::Saved->new($blue);

sub host { return VGPU::Lab::host(@_) }

sub no_complaints {
    my $said = $blue->run('dmesg --level=emerg,alert,crit,err,warn | grep -iE "virtio.?gpu|drm"', fail => 1);
    die $said if $said =~ /\S/;
    return;
}

point('a VM that QEMU was not told to save says so, and runs on', sub {
    $blue->destroy;
    $vm->display(1);
    $vm->define('auto');
    host('virsh -q start blue', timeout => 240);
    my $said = host("virsh save blue $file 2>&1", fail => 1, timeout => 180);
    die "it was saved\n" if $VGPU::Command::status == 0;
    die $said if $said !~ /dirty tracking/;
    die $blue->state if $blue->state ne 'running';
    return $said;
});

point('saved and restored: the guest runs on, its screen is there, and it computes', sub {
    $vm->start;
    my $boot = $vm->boot;
    my $picture = $vm->write_on_screen('saved');
    host("virsh save blue $file", timeout => 300);
    die $blue->state if $blue->state ne 'shut off';
    VGPU::Host::wait_state($blue->{vgpu}, qr/device=closed/);
    my ($size) = host("stat -c %s $file") =~ /^(\d+)/;
    host("virsh restore $file", timeout => 300);
    my $up = $vm->must_be_back($boot);
    my $screen = $vm->must_show($picture, 'restored');
    no_complaints();
    return "$size bytes, $up, $screen, " . computes($blue);
});

point('paused and resumed beside a program that computes: it notices nothing', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever');
    keeps_computing($job, 2);
    host('virsh suspend blue; sleep 3; virsh resume blue', timeout => 60);
    keeps_computing($job, 2);
    return VGPU::Compute::stop_right($blue, $job);
});

point('saved while it computes: the program loses its GPU, and says so; the next one computes', sub {
    my $boot = $vm->boot;
    $vm->start_program;
    host("virsh save blue $file; virsh restore $file", timeout => 300);
    my $up = $vm->must_be_back($boot);
    my $next = computes($blue);
    return "$up\n" . $vm->program_has_failed . $next;
});

point('virsh managedsave, and start', sub {
    my $boot = $vm->boot;
    my $picture = $vm->write_on_screen('managed');
    host('virsh managedsave blue', timeout => 300);
    host('virsh start blue', timeout => 300);
    my $up = $vm->must_be_back($boot);
    return "$up, " . $vm->must_show($picture, 'managed') . ', ' . computes($blue);
});

point('a snapshot with memory, and back to it', sub {
    my $boot = $vm->boot;
    my $picture = $vm->write_on_screen('snapshot');
    $blue->run('echo before >/run/mark');
    host('virsh snapshot-create-as blue one', timeout => 300);
    $blue->run('echo after >/run/mark');
    $vm->write_on_screen('later');
    host('virsh snapshot-revert blue one', timeout => 300);
    my $up = $vm->must_be_back($boot);
    my $mark = $blue->run('cat /run/mark');
    die $mark if $mark ne "before\n";
    my $screen = $vm->must_show($picture, 'reverted');
    host('virsh snapshot-delete blue one', timeout => 120);
    return "$up, $screen, " . computes($blue);
});

# The VM runs while its memory is written, as when it is migrated.
point('a snapshot while it runs and computes: the program does not notice, and the snapshot is one', sub {
    my $boot = $vm->boot;
    my $memory = '/var/lib/libvirt/images/blue-live.memory';
    my $picture = $vm->write_on_screen('live');
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever --pause 500');
    keeps_computing($job, 2);
    host("virsh snapshot-create-as blue live --live --memspec file=$memory,snapshot=external --diskspec vda,snapshot=external",
        timeout => 400);
    my $went_on = keeps_computing($job, 2);
    VGPU::Compute::stop_right($blue, $job);
    $vm->write_on_screen('later');
    host('virsh snapshot-revert blue live', timeout => 300);
    my $up = $vm->must_be_back($boot);
    my $screen = $vm->must_show($picture, 'live-reverted');
    host("virsh snapshot-delete blue live --metadata; rm -f $memory", timeout => 120);
    return "$went_on, $up, $screen, " . computes($blue);
});

point('a saved VM does not go on with a vGPU that has less memory, and goes on with the right one', sub {
    my $boot = $vm->boot;
    my $vram = "/sys/bus/mdev/devices/$uuid/vgpu/vram_bytes";
    my ($bytes) = host("cat $vram") =~ /^(\d+)/;
    host("virsh save blue $file", timeout => 300);
    host("echo 33554432 >$vram");
    my $said = host("virsh restore $file 2>&1", fail => 1, timeout => 300);
    die "it went on\n" if $VGPU::Command::status == 0;
    my $log = host('dmesg | grep "saved vGPU can" | tail -n 1');
    die $log if $log !~ /it has more memory/;
    host("echo $bytes >$vram; virsh restore $file", timeout => 300);
    return $said . $log . $vm->must_be_back($boot) . ', ' . computes($blue);
});

point('without a display all is as before', sub {
    $blue->destroy;
    host("rm -f $file; virsh -q define /run/blue.xml");
    $vm->display(0);
    VGPU::Tenant::start($blue);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

done_testing();
