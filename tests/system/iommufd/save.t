#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A VM whose QEMU uses iommufd and the vGPU's own character device, not a VFIO container: it computes, and is saved while it
# runs, without a setting: the vGPU records by itself which memory it has written. For a kernel with iommufd:
#   tests/system/check --kernel 6.12-iommufd tests/system/iommufd/save.t
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = VGPU::Vgpu->new(79, $red->{vgpu}{type} =~ s/half$/sixteenth/r);
my $free = VGPU::Host::ledger();
my $green = bless { name => 'green', gpu => {}, vgpu => $vgpu }, 'VGPU::Tenant';
my @qemu = ('-object', 'iommufd,id=iommufd0',
    '-device', "vfio-pci,id=gpu,bus=rp0,iommufd=iommufd0,sysfsdev=/sys/bus/mdev/devices/$vgpu->{uuid}");
my $file = '/var/lib/libvirt/images/green.state';
my $pid = '$(cat /run/rig/guests/green/pid)';

sub host { return VGPU::Lab::host(@_) }

# The guest runs under plain QEMU: this libvirt knows no iommufd.
sub guest { return VGPU::Command::run([VGPU::Lab::rig('guest', 'green', @_)], timeout => 300) }

sub monitor {
    my $said = guest('monitor', @_);
    die $said if $said =~ /^Error/m;
    return $said;
}

sub wait_monitor {
    my ($command, $pattern) = @_;
    my $said;
    for (1 .. 240) {
        $said = monitor($command);
        return $said if $said =~ $pattern;
        die $said if $said =~ /failed/;
        sleep 0.5;
    }
    die "after two minutes: $said\n";
}

point('a guest under QEMU with iommufd computes on a vGPU', sub {
    $vgpu->start(VGPU::Lab::gpu());
    $vgpu->wait_engine;
    guest('up', '--memory', '1G', '--init', 'minimal', '--', @qemu);
    my $files = host("ls -l /proc/$pid/fd | grep -oE '/dev/(iommu|vfio/.*)' | sort -u");
    die $files if $files !~ m{^/dev/iommu$}m || $files !~ m{^/dev/vfio/devices/vfio\d+$}m || $files =~ m{^/dev/vfio/(?:vfio|\d+)$}m;
    VGPU::Compute::install($green);
    ($green->{gpu}{ $vgpu->{uuid} }) = $green->wait_gpus;
    return $files . computes($green);
});

# The guest writes all the time, and its memory is copied meanwhile; the disk is the same, so QEMU's command line is.
point('saved while it computes, and loaded by another QEMU: the same boot, and it computes', sub {
    my $boot = $green->run('cat /proc/sys/kernel/random/boot_id');
    my $job = VGPU::Compute::vulkan($green, $green->gpu_of($vgpu), '--forever --pause 500');
    keeps_computing($job, 2);
    host("tr '\\0' '\\n' </proc/$pid/cmdline >/run/green.arguments; rm -f $file");
    monitor('migrate_set_parameter downtime-limit 5000');
    monitor("migrate -d file:$file");
    my $saved = wait_monitor('info migrate', qr/Migration status: completed|^Status:\s+completed/m);
    guest('monitor', 'quit');
    $job->stop;
    VGPU::Lab::hang_up('green');
    VGPU::Host::wait_state($vgpu, qr/device=closed/);
    $vgpu->wait_engine;
    host("mapfile -t words </run/green.arguments; \"\${words[@]}\" -incoming file:$file", timeout => 120);
    wait_monitor('info status', qr/running/);
    die "it has booted\n" if $green->run('cat /proc/sys/kernel/random/boot_id', timeout => 120) ne $boot;
    my ($size) = host("stat -c %s $file") =~ /^(\d+)/;
    return "$size bytes\n" . computes($green);
});

point('it ends, and leaves nothing behind', sub {
    my @bad = VGPU::KernelLog::complaints('guest', $green->run(VGPU::KernelLog::unread()));
    die "its kernel complains:\n", map { "$_\n" } @bad if @bad;
    guest('down');
    host("rm -f $file");
    $vgpu->remove;
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return join "\n", map { computes($_) } $red, $blue;
});

done_testing();
