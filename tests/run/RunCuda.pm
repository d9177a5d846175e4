# SPDX-License-Identifier: MIT
# RunLive's host with one of NVIDIA's GPUs, by the files that a host has of it: the CUDA door is over the fake card.
package RunCuda;
use strict;
use warnings;
use Exporter 'import';
use File::Copy 'copy';
use File::Path 'make_path';
use RunLive;
use Test::More;

our @EXPORT = qw($card $cuda put on_card start_card program);

our $card = '0000:3b:00.0';
our $cuda = "$build/cuda-test";

sub put {
    my ($path, $text, $mode) = @_;
    make_path("$root$path" =~ s{/[^/]+$}{}r);
    open my $file, '>', "$root$path" or die "$path: $!\n";
    print $file $text;
    close $file;
    chmod $mode, "$root$path" if $mode;
    return;
}

sub put_library {
    my ($from, $to) = @_;
    make_path("$root$to" =~ s{/[^/]+$}{}r);
    copy($from, "$root$to") or die "$to: $!\n";
    return;
}

# What the driver's module and its package leave on a host.
sub make_gpu {
    my $place = "/sys/devices/pci0000:00/$card";
    my %is = (class => '0x030200', vendor => '0x10de', device => '0x20b0', numa_node => -1);
    put("$place/$_", "$is{$_}\n") for keys %is;
    put('/sys/bus/pci/drivers/nvidia/bind', '');
    symlink "../../../bus/pci/drivers/nvidia", "$root$place/driver" or die "driver: $!\n";
    make_path("$root/sys/bus/pci/devices");
    symlink "../../../devices/pci0000:00/$card", "$root/sys/bus/pci/devices/$card" or die "$card: $!\n";
    put('/sys/module/nvidia/version', "570.1\n");
    put("/proc/driver/nvidia/gpus/$card/information", "Device Minor: \t 0\n");
    put("/dev/$_", '') for qw(nvidia0 nvidiactl nvidia-uvm);
    my $libraries = '/usr/lib/' . (`uname -m` =~ /aarch64/ ? 'aarch64' : 'x86_64') . '-linux-gnu';
    put_library("$cuda/real/libcuda.so.1", "$libraries/libcuda.so.570.1");
    put_library("$cuda/real/libnvidia-ml.so.1", "$libraries/libnvidia-ml.so.570.1");
    put_library("$cuda/plain/libcuda.so.1", '/usr/lib/mdev-vgpu/cuda/libcuda.so.1');
    return;
}

# MiB of the card's memory that programs have: those of the slice, or others.
sub on_card {
    my ($cgroup) = @_;
    my ($text) = output_of("$cuda/vgpu-memory-limit show $card " . ($cgroup // '/programs'));
    return $text =~ /^\S+ (\d+)$/ ? $1 >> 20 : $text;
}

# vgpud and the arbiter of a card of so many MiB.
sub start_card {
    my ($mib) = @_;
    $ENV{FAKE_CUDA_CARD} = "$root/card";
    $ENV{FAKE_CUDA_TOTAL} = $mib << 20;
    $ENV{PATH} = "$root/bin:$ENV{PATH}";
    $ENV{DBUS_SYSTEM_BUS_ADDRESS} = "unix:path=$root/bus";
    put('/etc/vgpu/gpus.conf', "[gpu $card]\nmode=shared\nvram=${mib}M\n");
    put('/etc/vgpu/types.d/10.conf', "[type vgpu-half]\nvram=1/2\n[type vgpu-full]\nvram=1/1\n");
    make_gpu();
    start('bus', 'dbus-daemon', '--session', '--nofork', '--nopidfile', "--address=$ENV{DBUS_SYSTEM_BUS_ADDRESS}");
    within(20, sub { -S "$root/bus" }) or BAIL_OUT('no bus');
    $gpu = $card;
    start_vgpud();
    start('arbiter', "$build/governor/vgpu-arbiter", "--root=$root", $card);
    return;
}

# A program of a slice, whose arbiter serves it: its process.
sub program {
    my ($name, $slice, @command) = @_;
    my $socket = "$root/run/vgpu/slices/$slice/governor.sock";
    ok(within(20, sub { -S $socket }), "the arbiter serves slice $slice") or diag(slurp("$root/arbiter.log"));
    local $ENV{LD_LIBRARY_PATH} = "$cuda/plain:$build/governor";
    local $ENV{VGPU_GOVERNOR_SOCKET} = $socket;
    local $ENV{FAKE_CUDA_CGROUP} = '/programs';
    return start($name, @command);
}

1;
