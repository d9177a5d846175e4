# SPDX-License-Identifier: MIT
# The second virtio-gpu of a rig as NVIDIA's: it is bound to a module of the tests called nvidia (tests/fake-cuda/module),
# and its driver is the fake one (tests/fake-cuda), installed under the names of NVIDIA's files.
package VGPU::FakeNvidia;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;
use VGPU::Whole;

our $libraries = '/usr/lib/x86_64-linux-gnu';
# Of the unit that reads the driver.
our $readings = '/run/systemd/system/vgpu-nvidia-readings.service.d';

# Its address.
sub gpu {
    my (undef, $gpu) = VGPU::Lab::host('lspci -Dn -d 1af4:1050') =~ /^(\S+)/mg;
    return $gpu // die "this rig has no second GPU (rig up --gpus 2)\n";
}

# Builds the driver and @programs, and takes them to the host: the programs to where containers have them.
sub install {
    my (@programs) = @_;
    VGPU::Command::run([VGPU::Lab::rig('build', '--kernel', $VGPU::Lab::kernel, '--', 'sh', '-c', 'make -s cuda-in-l1 KVER=$(ls /lib/modules | head -n 1)')],
        timeout => 900, name => '[build] make cuda-in-l1');
    VGPU::Command::run([VGPU::Lab::rig('put', "build/cuda-in-l1/$_->[0]", "$_->[1]/")])
        for (map { [$_, $VGPU::Slice::programs] } @programs), ['nvidia.ko', '/run'], ['libcuda.so.570.1', $libraries], ['libnvidia-ml.so.570.1', $libraries];
    return VGPU::Lab::host('ldconfig', timeout => 120);
}

# $more: variables of the fake driver, for the readings.
sub share {
    my ($gpu, $more) = @_;
    VGPU::Lab::host(<<"SH", timeout => 120);
set -e
mkdir -p $readings
printf '[Service]\\nEnvironment=FAKE_CUDA_PCI=$gpu FAKE_CUDA_TOTAL=8589934592 $more\\n' >$readings/fake.conf
systemctl daemon-reload
insmod /run/nvidia.ko
echo nvidia >/sys/bus/pci/devices/$gpu/driver_override
echo $gpu >/sys/bus/pci/devices/$gpu/driver/unbind
echo $gpu >/sys/bus/pci/drivers_probe
SH
    # udev has started the unit with the driver.
    VGPU::Slice::soon(sub { VGPU::Lab::host("cat /run/vgpu/readings/$gpu", fail => 1) =~ /^memory=8588886016$/m }, 'the driver is not read');
    VGPU::Lab::host('cat >>/etc/vgpu/gpus.conf', stdin => "[gpu $gpu]\nmode=shared\n");
    VGPU::Lab::host("vgpuctl reload && systemctl start vgpu-registrar\@$gpu.service", timeout => 180);
    return VGPU::Whole::until_mode($gpu, 'shared');
}

# $conf: what gpus.conf had before.
sub remove {
    my ($gpu, $conf) = @_;
    VGPU::Lab::host('cat >/etc/vgpu/gpus.conf', stdin => $conf);
    return VGPU::Lab::host(<<"SH", timeout => 180);
vgpuctl reload
uvm=\$(awk '\$2 == "nvidia-uvm" { print \$1 }' /proc/devices)
echo >/sys/bus/pci/devices/$gpu/driver_override
echo $gpu >/sys/bus/pci/drivers/nvidia/unbind
set -e
rmmod nvidia
rm -f /dev/char/195:* /dev/char/\$uvm:0
echo $gpu >/sys/bus/pci/drivers_probe
systemctl stop vgpu-nvidia-readings.service
rm -r $readings /run/vgpu/readings
systemctl daemon-reload
rm $libraries/libcuda.so.570.1 $libraries/libnvidia-ml.so.570.1
ldconfig
SH
}

1;
