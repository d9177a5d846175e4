# SPDX-License-Identifier: MIT
# vGPUs: made with mdevctl, their engines by systemd.
package VGPU::Vgpu;

use strict;
use warnings;

use Time::HiRes qw(sleep time);
use VGPU::Lab;

sub new {
    my ($class, $number, $type) = @_;
    my $uuid = sprintf 'c0ffee00-0000-4000-8000-%012d', $number;
    return bless { uuid => $uuid, type => $type, unit => "vgpu-engine\@$uuid.service" }, $class;
}

# Defines it on the GPU, persistently, and starts it. Returns mdevctl's listing.
sub start {
    my ($self, $gpu) = @_;
    return VGPU::Lab::host(<<"SH");
set -e
mdevctl define -u $self->{uuid} -p $gpu -t $self->{type}
mdevctl start -u $self->{uuid}
mdevctl list -u $self->{uuid}
SH
}

# Stops and undefines it. udev and systemd remove its node and its engine: waits for them, too.
sub remove {
    my ($self) = @_;
    my $inside = VGPU::Command::patience(60);
    VGPU::Lab::host(<<"SH", timeout => 120);
set -e
mdevctl stop -u $self->{uuid}
mdevctl undefine -u $self->{uuid}
udevadm settle
timeout $inside sh -c 'while systemctl -q is-active $self->{unit}; do sleep 0.2; done'
SH
    return;
}

sub exists {
    my ($self) = @_;
    VGPU::Lab::host("test -e /sys/bus/mdev/devices/$self->{uuid}", fail => 1);
    return $VGPU::Command::status == 0;
}

# Waits until systemd has the engine running and ready; returns its main process.
sub wait_engine {
    my ($self, $timeout) = @_;
    my $limit = $timeout // 90;
    my $inside = VGPU::Command::patience($limit);
    my $pid = VGPU::Lab::host(<<"SH", timeout => $limit + 20);
timeout $inside sh -c 'until systemctl -q is-active $self->{unit}; do sleep 0.3; done' ||
    { systemctl status --no-pager -l $self->{unit}; exit 1; }
systemctl show -P MainPID $self->{unit}
SH
    chomp $pid;
    return $pid;
}

sub engine_pid {
    my ($self) = @_;
    my $pid = VGPU::Lab::host("systemctl show -P MainPID $self->{unit}");
    chomp $pid;
    return $pid;
}

# Its attributes in /sys.
sub attribute {
    my ($self, $name) = @_;
    my $text = VGPU::Lab::host("cat /sys/bus/mdev/devices/$self->{uuid}/vgpu/$name");
    chomp $text;
    return $text;
}

1;
