# SPDX-License-Identifier: MIT
# A VM as an operator makes it with virt-install, from a disk that boots by itself: OVMF, grub, cloud-init, and all of
# virt-install's default devices. Its rig has the image `cloud`, whose disk is the VM's.
package VGPU::Cloud;

use strict;
use warnings;

use parent -norequire, 'VGPU::Tenant';
use Time::HiRes qw(sleep time);
use VGPU::Lab;
use VGPU::Tenant;

sub new {
    my ($class, $name) = @_;
    return bless { name => $name, gpu => {} }, $class;
}

# Makes the VM and starts it. $more: further options of virt-install.
sub install {
    my ($self, $more) = @_;
    my $name = $self->{name};
    return VGPU::Lab::host(<<"SH", timeout => 300);
set -e
virsh -q net-list --name | grep -qx default || virsh -q net-start default
cat >/run/$name.yaml <<YAML
#cloud-config
hostname: $name
disable_root: false
ssh_authorized_keys:
  - \$(cat /root/.ssh/authorized_keys)
YAML
virt-install --name $name --memory 3072 --vcpus 2 --import --osinfo debian13 \\
    --disk path=/dev/disk/by-id/virtio-cloud --network network=default --boot uefi \\
    --cloud-init user-data=/run/$name.yaml --noautoconsole $more 2>&1
virsh dumpxml $name | grep -E 'machine=|<loader|<video|<model type|<memballoon|usb|<vcpu|access mode|source type'
SH
}

# Empty: it has none yet.
sub address {
    my ($self) = @_;
    return (VGPU::Lab::host("virsh domifaddr $self->{name}", fail => 1) =~ /ipv4\s+([\d.]+)/)[0];
}

# Waits until it has an address and accepts logins; returns how long that took.
sub wait_up {
    my ($self, $limit) = @_;
    my $begin = time;
    my $name = $self->{name};
    my $address;
    until ($address) {
        $address = $self->address;
        die "$name has no address after $limit s; its state: " . $self->state . "\n" if time - $begin > $limit;
        sleep 2 if !$address;
    }
    VGPU::Lab::adopt_guest($name, $address);
    until (eval { $self->run('true', timeout => 60); 1 }) {
        VGPU::Lab::hang_up($name);
        die "$name lets nobody in after $limit s: $@" if time - $begin > $limit;
        sleep 2;
    }
    $self->run('cloud-init status --wait', timeout => $limit, fail => 1);
    return sprintf '%s after %.0f s', $address, time - $begin;
}

# Its kernel's id of this boot.
sub boot_id {
    my ($self) = @_;
    my $id = $self->run('cat /proc/sys/kernel/random/boot_id', timeout => 60);
    chomp $id;
    return $id;
}

# Runs $code, which reboots the VM, and waits for the new boot.
sub boots_anew {
    my ($self, $code, $limit) = @_;
    my $before = $self->boot_id;
    my $begin = time;
    $code->();
    while (1) {
        VGPU::Lab::hang_up($self->{name});
        my $now = eval { $self->boot_id };
        last if $now && $now ne $before;
        die "$self->{name} has not booted anew after $limit s\n" if time - $begin > $limit;
        sleep 2;
    }
    $self->run('cloud-init status --wait', timeout => $limit, fail => 1);
    return sprintf 'up again after %.0f s', time - $begin;
}

# Its GPUs except that of its display.
sub vgpus {
    my ($self) = @_;
    return grep { $_ ne $self->{display} } $self->gpus;
}

# Removes the VM with all of its files.
sub remove {
    my ($self) = @_;
    my $name = $self->{name};
    VGPU::Lab::host("virsh destroy $name; virsh undefine $name --nvram; rm -f /run/$name.yaml", fail => 1);
    VGPU::Lab::hang_up($name);
    return;
}

1;
