# SPDX-License-Identifier: MIT
# Slices for containers, in vgpud's ledger and in the governor's arbiter, and the image that computes with them: the
# guests' own tree, a stock Debian with Mesa.
package VGPU::Slice;

use strict;
use warnings;

use JSON::PP;
use Time::HiRes qw(sleep);
use VGPU::Command;
use VGPU::Lab;

our $kind = 'mdev-vgpu.org/slice';
our $image = '/run/image';
# Our programs that containers get as /opt.
our $programs = '/usr/local/lib/vgpu-test';
our $compute = '/opt/vk-compute --device-name Venus';
our $vulkaninfo = 'env VK_LOADER_DRIVERS_SELECT=virtio* vulkaninfo 2>/dev/null';

sub ctl { return VGPU::Lab::host("vgpuctl $_[0]", timeout => 120) }

# A slice of vgpud's ledger, by UUID; undef: there is none.
sub in_ledger {
    my ($id) = @_;
    return (grep { $_->{Uuid} eq $id } @{ decode_json(ctl('-o json slice list')) })[0];
}

# The arbiter's status of it; undef: it has no such slice. An arbiter that does not answer is no answer.
sub in_arbiter {
    my ($gpu, $id) = @_;
    my $text = ask_arbiter($gpu);
    die "the arbiter of $gpu does not answer\n" if !defined $text;
    return (grep { $_->{id} eq $id } @{ decode_json($text)->{slices} })[0];
}

# Its whole status; undef: it does not answer.
sub ask_arbiter {
    my ($gpu) = @_;
    my $socket = "/run/vgpu/governor/$gpu/status.sock" =~ s/:/\\:/gr;
    my $text = VGPU::Lab::host("socat -t 5 - 'UNIX-CONNECT:$socket'", fail => 1);
    return $VGPU::Command::status || $text !~ /^\{/ ? undef : $text;
}

# Runs it and expects it to fail with such words, which it returns.
sub refused {
    my ($command, $words) = @_;
    my $text = VGPU::Lab::host("$command 2>&1", fail => 1, timeout => 180);
    die "it did not fail:\n$text" if $VGPU::Command::status == 0;
    die "it says:\n$text" if $text !~ $words;
    return $text;
}

# Waits for a condition, because vgpud learns of others' changes by events.
sub soon {
    my ($code, $why) = @_;
    for (1 .. 100) {
        return 1 if $code->();
        sleep 0.2;
    }
    die "$why:\n" . VGPU::Lab::host('vgpuctl slice list', fail => 1, timeout => 120);
}

# The size of the first heap that vulkaninfo shows.
sub heap {
    my ($text) = @_;
    my ($heap) = $text =~ /memoryHeaps\[0\]:\s+size\s+=\s+(\d+)/;
    return $heap // die "no heap:\n$text";
}

# The image's tree, and @storage as file systems in memory for programs that keep images there.
sub mount_image {
    my (@storage) = @_;
    VGPU::Lab::host(<<"SH", timeout => 300);
set -e
systemctl start vgpud
mkdir -p $image $programs
mountpoint -q $image || mount -t ext4 -o ro,noload /dev/\$(grep -lx guest /sys/block/vd*/serial | cut -d/ -f4) $image
for dir in @storage; do
    mountpoint -q \$dir || { mkdir -p \$dir; mount -t tmpfs -o size=1G tmpfs \$dir; }
done
SH
    VGPU::Command::run([VGPU::Lab::rig('put', $_, "$programs/")])
        for qw(build/guest/vk-compute build/guard/t-hoard build/bench/governor-load/governor-load);
    return;
}

sub unmount_image {
    my (@storage) = @_;
    VGPU::Lab::host("umount @storage $image", fail => 1);
    return;
}

# The image's tree as a user's own, for containers without root: its files belong to the ids that the user's containers
# have.
sub mount_for {
    my ($user) = @_;
    VGPU::Lab::host(<<"SH", timeout => 60);
set -e
mkdir -p $image-$user
first=\$(sed -n 's/^$user:\\([0-9]*\\):.*/\\1/p' /etc/subuid)
uid=\$(id -u $user) gid=\$(id -g $user)
mount --bind -o X-mount.idmap="u:0:\$uid:1 u:1:\$first:65535 g:0:\$gid:1 g:1:\$first:65535" $image $image-$user
SH
    return "$image-$user";
}

# A command that prints the image as a tar. Files for kernels, OpenGL, OpenCL and other GPUs, which no container reads,
# are left out: there is little memory for the storage, and podman sums up every byte.
sub tar {
    my $libraries = 'usr/lib/x86_64-linux-gnu';
    my $without = join ' ', map { "--exclude='./$_'" }
        qw(boot usr/lib/modules usr/lib/clc usr/lib/llvm-* usr/lib/udev usr/share/doc usr/share/locale var/cache),
        "$libraries/gallium-pipe",
        (map { "$libraries/lib$_*" } qw(LLVM clang gallium Rusticl z3)),
        map { "$libraries/libvulkan_$_*" } qw(intel nouveau radeon lvp gfxstream);
    return "tar -C $image/ --one-file-system $without -cf - .";
}

# Neither the host's file systems nor the arbiter know these slices any more.
sub must_have_gone {
    my ($gpu, @ids) = @_;
    my @places = map { ("/run/vgpu/slices/$_", "/run/vgpu/governor/$gpu/slices/$_.conf", "/run/vgpu/guard/$_") } @ids;
    my $left = VGPU::Lab::host("ls -d /run/vgpu/containers/* /var/run/cdi/mdev-vgpu.json @places 2>/dev/null", fail => 1);
    die "left: $left" if $left =~ /\S/;
    soon(sub { !grep { in_arbiter($gpu, $_) } @ids }, 'the arbiter knows them still');
    return;
}

1;
