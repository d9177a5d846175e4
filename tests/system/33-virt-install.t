#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The VM that virt-install makes by default, booted from its own disk by OVMF, shim and grub, with cloud-init; it gets a
# vGPU beside its display.
# Rig: --image cloud
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Cloud;
use VGPU::Test;

my $uuid = 'c10d0000-0000-4000-8000-000000000001';
my $boot_takes = 1500;
my $vm = VGPU::Cloud->new('web');

sub host { return VGPU::Lab::host(@_) }
sub vgpu { return (grep { $_->{Uuid} eq $uuid } @{ decode_json(host('vgpuctl -o json vgpu list')) })[0] }

# Both ways of computing, on the vGPU.
sub both {
    my ($gpu, @more) = $vm->vgpus;
    die 'not one vGPU in the guest: ' . join(' ', $gpu // (), @more) . "\n" if !$gpu || @more;
    return join "\n", map { VGPU::Compute::verdict($_->($vm, $gpu)->wait(600)) } \&VGPU::Compute::vulkan, \&VGPU::Compute::opencl;
}

# Complaints of the guest's kernel in this boot.
sub kernel_is_well {
    my @bad = VGPU::KernelLog::complaints('guest', $vm->run('dmesg', timeout => 120));
    die "the guest's kernel: ", map { "$_\n" } @bad if @bad;
    return;
}

# The usual VMs are not needed here.
$_->destroy for map { VGPU::Tenant->new($_) } qw(red blue);
# libvirt finds hooks when it starts.
host('systemctl restart libvirtd', timeout => 120);

my $made = point('virt-install makes a VM with its memory in a memfd', sub {
    return $vm->install('--memorybacking source.type=memfd,access.mode=shared');
});

# All else needs that.
$made &&= point('the installed VM boots from its own disk, and cloud-init sets it up', sub {
    my $said = $vm->wait_up($boot_takes);
    # In the emulated guest cloud-init alone takes up to a minute.
    my $name = $vm->run('hostname; ls -d /sys/firmware/efi; cloud-init status; cat /proc/cmdline; lspci; mokutil --sb-state', timeout => 300, fail => 1);
    die $name if $name !~ /^web\n.*^status: done$/ms;
    ($vm->{display}) = $vm->run('lspci -Dn -d 1af4:1050') =~ /^(\S+)/;
    VGPU::Compute::install($vm);
    return "$said\n$name";
});
if (!$made) {
    done_testing();
    exit 1;
}

point('vgpuctl attach: one vGPU more, and it computes', sub {
    my @before = $vm->gpus;
    my $said = host("vgpuctl attach web --type half --uuid $uuid", timeout => 180);
    $vm->wait_gpus(@before);
    my $seen = vgpu();
    die encode_json($seen) if $seen->{Vm} ne 'web' || $seen->{Domain} ne 'web';
    return $said . both();
});

point("the guest's kernel has not complained", \&kernel_is_well);

point('vgpuctl detach: the guest is left with its display', sub {
    my $said = host("vgpuctl detach web $uuid", timeout => 180);
    die "it is there still\n" if vgpu();
    die "the guest has it still\n" if $vm->vgpus;
    kernel_is_well();
    return $said;
});

# virt-install lets the first life end where the guest would reboot: it takes it for an installation.
sub shut_down {
    host('virsh shutdown web');
    host("timeout 300 sh -c 'while virsh domstate web | grep -q running; do sleep 1; done'", timeout => 320);
    VGPU::Lab::hang_up('web');
    return;
}

point('prepared, it has its vGPU from power-on: firmware and grub boot it, and it computes', sub {
    shut_down();
    host("vgpuctl domain prepare web --type quarter --uuid $uuid");
    host('virsh start web', timeout => 180);
    my $said = $vm->wait_up($boot_takes) . '; ' . both();
    kernel_is_well();
    return $said;
});

point('virsh reboot in the middle of its work, and it computes', sub {
    my ($gpu) = $vm->vgpus;
    my $job = VGPU::Compute::vulkan($vm, $gpu, '--forever');
    $job->expect(qr/^OK round 1:/m, 240);
    my $said = $vm->boots_anew(sub { host('virsh reboot web') }, $boot_takes);
    $job->stop;
    kernel_is_well();
    return "$said; " . both();
});

point('virsh shutdown: the vGPU is given back', sub {
    shut_down();
    for (1 .. 50) {
        return if !vgpu();
        sleep 0.2;
    }
    die "the vGPU is there still\n" . host('vgpuctl vgpu list');
});

$vm->remove;
done_testing();
