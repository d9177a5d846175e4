# SPDX-License-Identifier: MIT
# A VM of Incus that boots from the disk of the rig's image `cloud`, with what Incus gives every VM: OVMF with Secure Boot,
# a bridge with DHCP, cloud-init from a disk of Incus's own.
package VGPU::Incus;

use strict;
use warnings;

use parent -norequire, 'VGPU::Cloud';
use VGPU::Cloud;
use VGPU::Lab;

# What a host needs once: a pool, a bridge, and a default profile with neither, because each VM here names its own.
sub set_up {
    return VGPU::Lab::host(<<'SH', timeout => 300);
set -e
systemctl start incus
incus admin waitready --timeout 120
incus storage create default dir
incus network create incusbr0 ipv4.address=10.88.0.1/24 ipv4.nat=false ipv6.address=none
incus version
SH
}

sub tear_down {
    VGPU::Lab::host('incus network delete incusbr0; incus storage delete default; systemctl stop incus.socket incus',
        timeout => 120, fail => 1);
    return;
}

# The root disk of Incus stays empty; the image is a disk that is booted before it.
sub install {
    my ($self) = @_;
    my $name = $self->{name};
    return VGPU::Lab::host(<<"SH", timeout => 300);
set -e
incus init $name --empty --vm -s default -n incusbr0 -c limits.cpu=2 -c limits.memory=3GiB -d root,size=64MiB
incus config device add $name image disk source=\$(readlink -f /dev/disk/by-id/virtio-cloud) boot.priority=10
incus config device add $name cloud-init disk source=cloud-init:config
incus config set $name cloud-init.user-data="#cloud-config
hostname: $name
disable_root: false
ssh_authorized_keys:
  - \$(cat /root/.ssh/authorized_keys)
"
SH
}

sub state {
    my ($self) = @_;
    my $state = lc VGPU::Lab::host("incus list -f csv -c s '^$self->{name}\$'", fail => 1);
    $state =~ s/\s+\z//;
    return $state;
}

sub address {
    my ($self) = @_;
    return (VGPU::Lab::host("incus list -f csv -c 4 '^$self->{name}\$'", fail => 1) =~ /([\d.]{7,})/)[0];
}

sub remove {
    my ($self) = @_;
    VGPU::Lab::host("incus delete -f $self->{name}", fail => 1, timeout => 180);
    VGPU::Lab::hang_up($self->{name});
    return;
}

1;
