# SPDX-License-Identifier: MIT
# L1's second GPU as one of NVIDIA's: a virtio-gpu that is bound to a module of the tests called nvidia
# (tests/fake-cuda/module), with the fake driver (tests/fake-cuda) under the names of NVIDIA's files. All else is as it
# is installed.
package VGPU::FakeNvidia;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;
use VGPU::Whole;

our $libraries = '/usr/lib/x86_64-linux-gnu';
# What is in use of the card, for the driver of each process that shares it.
our $card = '/run/fake-card';
my $units = '/run/systemd/system';
my $readings = 'vgpu-nvidia-readings.service';
# A unit may use this node of the card, so that its processes find $card in its place.
my $node = '/dev/nvidia-uvm';
my ($gpu, $conf, %set);

sub host { return VGPU::Lab::host(@_) }

# Its address.
sub gpu {
    (undef, $gpu) = host('lspci -Dn -d 1af4:1050') =~ /^(\S+)/mg if !$gpu;
    return $gpu // die "this rig has no second GPU (rig up --gpus 2)\n";
}

# What the fake driver needs to know, for the environment of a program that has it.
sub env { return 'FAKE_CUDA_PCI=' . gpu() . ' FAKE_CUDA_TOTAL=8589934592' }

# Builds the driver and @programs, and takes them to the host: the programs to where containers have them.
sub install {
    my (@programs) = @_;
    VGPU::Command::run([VGPU::Lab::rig('build', '--kernel', $VGPU::Lab::kernel, '--', 'sh', '-c', 'make -s cuda-in-l1 KVER=$(ls /lib/modules | head -n 1)')],
        timeout => 900, name => '[build] make cuda-in-l1');
    VGPU::Command::run([VGPU::Lab::rig('put', "build/cuda-in-l1/$_->[0]", "$_->[1]/")])
        for (map { [$_, $VGPU::Slice::programs] } @programs), ['nvidia.ko', '/run'], ['libcuda.so.570.1', $libraries], ['libnvidia-ml.so.570.1', $libraries];
    return host("ldconfig; touch $card; chmod 666 $card", timeout => 120);
}

sub write_dropin {
    my ($unit, @lines) = @_;
    $set{$unit} = 1;
    host("mkdir -p $units/$unit.d && cat >$units/$unit.d/fake.conf && systemctl daemon-reload", stdin => join "\n", '[Service]', @lines, '');
    return;
}

# What the service that reads the driver has in its environment besides. @more: NAME=VALUE.
sub set_readings {
    my (@more) = @_;
    return write_dropin($readings, "Environment=@{[ env() ]} FAKE_CUDA_CARD=$card @more");
}

# A unit whose command has the driver in a sandbox of its own, to which --setenv passes what it needs. @more: NAME=VALUE.
sub set_unit {
    my ($unit, $command, @more) = @_;
    my $words = join ' ', map { "--setenv=$_" } 'VGPU_GOVERNOR=1', split(' ', env()), "FAKE_CUDA_CARD=$node", @more;
    return write_dropin($unit, 'ExecStart=', "ExecStart=$command $words", "BindPaths=$card:$node");
}

# A unit that calls the driver without more of a sandbox.
sub set_driver {
    my ($unit) = @_;
    return write_dropin($unit, "Environment=@{[ env() ]} FAKE_CUDA_CARD=$node", "BindPaths=$card:$node");
}

# The guard of the slice with this UUID; '': those of all slices.
sub set_guard {
    my ($id, @more) = @_;
    return set_unit("vgpu-guard\@$id.service", '/usr/bin/vgpu-guard --config=/run/vgpu/guard.conf --shader-cache=/run/vgpu/shaders', @more);
}

# The GPU is shared by vgpud, which has read its driver.
sub share {
    my $address = gpu();
    set_readings();
    host(<<"SH", timeout => 120);
set -e
insmod /run/nvidia.ko
echo nvidia >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/devices/$address/driver/unbind
echo $address >/sys/bus/pci/drivers_probe
SH
    # udev has started the unit with the driver.
    VGPU::Slice::soon(sub { host("cat /run/vgpu/readings/$address", fail => 1) =~ /^memory=8588886016$/m }, 'the driver is not read');
    $conf = host('cat /etc/vgpu/gpus.conf');
    host('cat >>/etc/vgpu/gpus.conf', stdin => "[gpu $address]\nmode=shared\n");
    host("vgpuctl reload && systemctl start vgpu-registrar\@$address.service", timeout => 180);
    VGPU::Whole::until_mode($address, 'shared');
    return host("vgpuctl gpu list; vgpuctl doctor | grep -i cuda");
}

# As L1 was before.
sub remove {
    my $address = gpu();
    my @dropins = map { "$units/$_.d" } sort keys %set;
    %set = ();
    host('cat >/etc/vgpu/gpus.conf', stdin => $conf);
    return host(<<"SH", timeout => 180);
vgpuctl reload
uvm=\$(awk '\$2 == "nvidia-uvm" { print \$1 }' /proc/devices)
echo >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/drivers/nvidia/unbind
set -e
rmmod nvidia
rm -f /dev/char/195:* /dev/char/\$uvm:0
echo $address >/sys/bus/pci/drivers_probe
systemctl stop $readings
rm -rf @dropins /run/vgpu/readings
systemctl daemon-reload
rm $libraries/libcuda.so.570.1 $libraries/libnvidia-ml.so.570.1 $card
ldconfig
SH
}

1;
