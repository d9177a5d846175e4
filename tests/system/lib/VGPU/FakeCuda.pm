# SPDX-License-Identifier: MIT
# L1's second GPU as one of NVIDIA's: a virtio-gpu that is bound to a module of the tests called nvidia
# (tests/fake-cuda/module), with the fake driver (tests/fake-cuda) under the names of NVIDIA's files. All else is as it
# is installed.
package VGPU::FakeCuda;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;
use VGPU::Whole;

my $libraries = '/usr/lib/x86_64-linux-gnu';
my $units = '/run/systemd/system';
# In the place of a node that all have open: what is in use of the card, for the driver of each process.
my $shared = '/run/fake-card';
my ($conf, $gpu);

sub host { return VGPU::Lab::host(@_) }

# Its address.
sub gpu {
    (undef, $gpu) = host('lspci -Dn -d 1af4:1050') =~ /^(\S+)/mg if !$gpu;
    return $gpu // die "this rig has no second GPU (rig up --gpus 2)\n";
}

# What the fake driver needs to know, of a program that has it.
sub env { return "FAKE_CUDA_PCI=@{[ gpu() ]} FAKE_CUDA_TOTAL=8589934592" }

# The GPU is shared by vgpud, which has read its driver. The programs client-container and remote-client are with those
# that containers get.
sub up {
    my (@storage) = @_;
    my $address = gpu();
    VGPU::Command::run([VGPU::Lab::rig('build', '--kernel', $VGPU::Lab::kernel, '--', 'sh', '-c', 'make -s cuda-in-l1 KVER=$(ls /lib/modules | head -n 1)')],
        timeout => 900, name => '[build] make cuda-in-l1');
    VGPU::Slice::mount_image(@storage);
    VGPU::Command::run([VGPU::Lab::rig('put', "build/cuda-in-l1/$_->[0]", "$_->[1]/")])
        for ['client-container', $VGPU::Slice::programs], ['remote-client', $VGPU::Slice::programs], ['nvidia.ko', '/run'],
        ['libcuda.so.570.1', $libraries], ['libnvidia-ml.so.570.1', $libraries];
    host(<<"SH", timeout => 120);
set -e
ldconfig
touch $shared
chmod 666 $shared
mkdir -p $units/vgpu-nvidia-readings.service.d
printf '[Service]\\nEnvironment=@{[ env() ]} FAKE_CUDA_CARD=$shared\\n' >$units/vgpu-nvidia-readings.service.d/fake.conf
systemctl daemon-reload
insmod /run/nvidia.ko
echo nvidia >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/devices/$address/driver/unbind
echo $address >/sys/bus/pci/drivers_probe
SH
    VGPU::Slice::soon(sub { host("cat /run/vgpu/readings/$address", fail => 1) =~ /^memory=8588886016$/m }, 'the driver is not read');
    $conf = host('cat /etc/vgpu/gpus.conf');
    host('cat >>/etc/vgpu/gpus.conf', stdin => "[gpu $address]\nmode=shared\n");
    host("vgpuctl reload && systemctl start vgpu-registrar\@$address.service", timeout => 180);
    VGPU::Whole::until_mode($address, 'shared');
    return host("ls -l $shared; vgpuctl gpu list; vgpuctl doctor | grep -i cuda");
}

# What the guards of all slices say to the fake driver. @more: NAME=VALUE.
sub set_guards {
    my (@more) = @_;
    my $words = join ' ', map { "--setenv=$_" } 'VGPU_GOVERNOR=1', split(' ', env()), 'FAKE_CUDA_CARD=/dev/nvidia-uvm', @more;
    return host(<<"SH");
set -e
mkdir -p $units/vgpu-guard\@.service.d
cat >$units/vgpu-guard\@.service.d/fake.conf <<END
[Service]
ExecStart=
ExecStart=/usr/bin/vgpu-guard --config=/run/vgpu/guard.conf --shader-cache=/run/vgpu/shaders $words
BindPaths=$shared:/dev/nvidia-uvm
END
systemctl daemon-reload
SH
}

# As L1 was before.
sub down {
    my (@storage) = @_;
    my $address = gpu();
    host('cat >/etc/vgpu/gpus.conf', stdin => $conf);
    host(<<"SH", timeout => 180);
vgpuctl reload
uvm=\$(awk '\$2 == "nvidia-uvm" { print \$1 }' /proc/devices)
echo >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/drivers/nvidia/unbind
set -e
rmmod nvidia
rm -f /dev/char/195:* /dev/char/\$uvm:0
echo $address >/sys/bus/pci/drivers_probe
systemctl stop vgpu-nvidia-readings.service
rm -rf $units/vgpu-nvidia-readings.service.d /run/vgpu/readings $units/vgpu-guard\@.service.d
systemctl daemon-reload
rm $libraries/libcuda.so.570.1 $libraries/libnvidia-ml.so.570.1 $shared
ldconfig
SH
    return VGPU::Slice::unmount_image(@storage);
}

1;
