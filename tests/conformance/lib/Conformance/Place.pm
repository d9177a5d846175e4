# SPDX-License-Identifier: MIT
# Where the judges run: the same tree of Debian everywhere, with the same GPU of L1 below.
#
#   control   a container with the GPU's node and nothing of ours: the host's own driver
#   guest     a VM with a vGPU; the tree is its second disk, and the judges run in it by chroot
#   native    a container with a slice by the door native
#   guarded   a container with a slice by the door guarded
#
#   my $place = Conformance::Place->new('guest')->open;
#   my ($text, $status) = $place->judge('vkmark', 600);
#   $place->close;
package Conformance::Place;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;
use VGPU::Vgpu;

our @names = qw(control guest native guarded);

my $image = '/var/lib/judges.img';
my $tree = '/run/judges';
my $programs = '/usr/local/lib/judges';
my $guest = 'judge';
my $address = '10.77.0.70';
my $vram = '256M';
my %slices = (native => 'cd100000-0000-4000-8000-000000000071', guarded => 'cd100000-0000-4000-8000-000000000072');

# Puts the disk image, as zstd has made it, and the files of in-place into L1.
sub prepare {
    my ($zst, @files) = @_;
    VGPU::Command::run(['bash', '-c', 'zst=$0; "$@" <"$zst"', $zst,
        VGPU::Lab::rig('run', '--', 'sh', '-c', "test -s $image || { zstd -qdc >$image.part && mv $image.part $image; }")],
        timeout => 900, name => '[L1] the image of the judges');
    VGPU::Lab::host(<<"SH", timeout => 120);
set -e
systemctl start vgpud
mkdir -p $tree $programs /var/lib/containers
mountpoint -q $tree || mount -o loop,ro,noload $image $tree
mountpoint -q /var/lib/containers || mount -t tmpfs -o size=1G tmpfs /var/lib/containers
SH
    put(@files);
    return;
}

# Files that in-place reads, for places that are opened from now on.
sub put {
    my (@files) = @_;
    VGPU::Command::run([VGPU::Lab::rig('put', @files, "$programs/")], timeout => 60);
    return;
}

sub new {
    my ($class, $name) = @_;
    die "there is no place $name: @names\n" if !grep { $_ eq $name } @names;
    return bless { name => $name }, $class;
}

sub open {
    my ($self) = @_;
    my $name = $self->{name};
    $self->open_guest if $name eq 'guest';
    $self->open_slice if $slices{$name};
    return $self;
}

sub close {
    my ($self) = @_;
    my $name = $self->{name};
    $self->close_guest if $name eq 'guest';
    VGPU::Lab::host("vgpuctl slice remove $name", fail => 1, timeout => 120) if $slices{$name};
    return;
}

sub open_slice {
    my ($self) = @_;
    my ($name, $id) = ($self->{name}, $slices{ $self->{name} });
    VGPU::Slice::ctl("slice create --door $name --name $name --uuid $id --vram $vram");
    return;
}

# A guest of plain QEMU's. Its root port has room for the vGPU's window.
sub open_guest {
    my ($self) = @_;
    my $gpu = VGPU::Lab::gpu();
    $self->{vgpu} = VGPU::Vgpu->new(71, 'virtio-pci-vgpu-half');
    $self->{vgpu}->start($gpu);
    $self->{vgpu}->wait_engine;
    my $words = 'console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off nokaslr no_timer_check'
        . ' modprobe.blacklist=lpc_ich,pcspkr,iTCO_wdt,i2c_i801 pci=hpmmioprefsize=2G,hpmmiosize=2M,hpbussize=1'
        . " rig.net=$address/24,10.77.0.1 rig.init=/usr/local/lib/rig/init rig.host=$guest";
    VGPU::Lab::adopt_guest($guest, $address);
    VGPU::Command::run([VGPU::Lab::rig('guest', $guest, 'up', '--memory', '3G', '--', '-append', $words,
        '-blockdev', "raw,node-name=judges,read-only=on,file.driver=file,file.filename=$image",
        '-device', 'virtio-blk-pci,drive=judges,serial=judges')], timeout => 600);
    my $said = VGPU::Command::run([VGPU::Lab::rig('guest', $guest, 'monitor', 'device_add',
        "vfio-pci,sysfsdev=/sys/bus/mdev/devices/$self->{vgpu}{uuid},bus=rp1,id=gpu")], timeout => 60);
    die "device_add: $said" if $said =~ /^Error/m;
    $self->enter_guest;
    return;
}

# The tree and what a program expects in it. The files of in-place come through L1.
sub enter_guest {
    my ($self) = @_;
    VGPU::Command::run(VGPU::Lab::remote_argv($guest, <<"SH"), timeout => 240, name => "[guest] the tree", remote => 1);
set -e
timeout 120 sh -c 'until [ -e /dev/dri/renderD128 ]; do sleep 0.2; done'
mkdir -p $tree
mount -o ro,noload /dev/\$(grep -lx judges /sys/block/vd*/serial | cut -d/ -f4) $tree
for dir in proc sys dev; do mount --rbind /\$dir $tree/\$dir; done
for dir in tmp opt run; do mount -t tmpfs -o mode=1777 tmpfs $tree/\$dir; done
SH
    my $files = VGPU::Lab::host("tar -C $programs -cf - . | base64", timeout => 60);
    VGPU::Command::run(VGPU::Lab::remote_argv($guest, "base64 -d | tar -C $tree/opt -xf -"), stdin => $files, remote => 1);
    return;
}

sub close_guest {
    my ($self) = @_;
    VGPU::Lab::hang_up($guest);
    VGPU::Command::run([VGPU::Lab::rig('guest', $guest, 'down')], timeout => 120, fail => 1);
    $self->{vgpu}->remove;
    return;
}

# podman's arguments for the device of this place.
sub device {
    my ($self) = @_;
    my $name = $self->{name};
    return $slices{$name} ? "--device $VGPU::Slice::kind=$name" : '--device /dev/dri/renderD128';
}

# A judge, to its end or its limit: its output, and its status (124: the limit, or no answer any more).
sub judge {
    my ($self, $judge, $limit) = @_;
    my $command = "/opt/in-place $judge $limit";
    my $argv = $self->{name} eq 'guest'
        ? VGPU::Lab::remote_argv($guest, "chroot $tree $command 2>&1")
        : VGPU::Lab::remote_argv(undef, "podman run --rm --name judge-$self->{name}-$judge --network none --log-driver none "
            . $self->device . " -v $programs:/opt:ro --tmpfs /tmp:rw,size=512m --rootfs $tree:O $command 2>&1");
    my $job = VGPU::Command::start($argv, name => "[$self->{name}] $judge", remote => 1);
    eval { $job->wait($limit + 120, fail => 1); 1 } or return ($job->output, 124);
    return ($job->output, $VGPU::Command::status);
}

1;
