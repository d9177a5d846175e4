# SPDX-License-Identifier: MIT
# The four places where the same program meets the same GPU. Each is opened for a round and closed after
# it, because passthrough takes the GPU from the host:
#
#   native        in L1 itself
#   qemu          in a guest with QEMU's own virtio-gpu-gl (Venus), rendering on L1's GPU
#   ours          in a guest with a vGPU, plugged in while it runs
#   passthrough   in a guest that has the GPU by vfio-pci
#
#   my $place = Bench::Place->new('ours')->open;
#   my $text = $place->run('vk-bench tiny', 60);
#   $place->counters;  $place->close;
package Bench::Place;

use strict;
use warnings;

use Time::HiRes qw(sleep time);
use VGPU::Command;
use VGPU::Lab;
use VGPU::Vgpu;

our @names = qw(native qemu ours passthrough);
my @programs = map { VGPU::Lab::top() . "/$_" } qw(build/bench/vk-bench build/guest/vk-compute tests/guest/on-gpu);
my $gpu = '0000:02:00.0';
my $type = 'virtio-pci-vgpu-half';

my @qemu_options = (
    '-object', 'memory-backend-memfd,id=mem,size=2G,share=on', '-machine', 'memory-backend=mem',
    '-display', 'egl-headless,rendernode=/dev/dri/renderD128',
    '-device', 'virtio-gpu-gl-pci,venus=on,blob=on,hostmem=1G,disable-legacy=on,bus=rp0',
);

# $number: of several guests at the same time. One guest is the vGPU's and passthrough's in turn: both
# are plugged in while it runs. QEMU's own device can't be, so its guest is started for each round.
sub new {
    my ($class, $name, $number) = @_;
    $number //= 1;
    my $guest = ($name eq 'qemu' ? 'qemu' : 'tenant') . $number;
    return bless { name => $name, guest => $guest, image => 'trixie', number => $number, took => {} }, $class;
}

sub open {
    my ($self) = @_;
    my $name = $self->{name};
    bind_gpu($name eq 'passthrough' ? 'vfio-pci' : 'virtio-pci');
    if ($name eq 'native') {
        VGPU::Command::run([VGPU::Lab::rig('put', @programs, '/usr/local/bin/')], timeout => 60);
        $self->{address} = $gpu;
        return $self;
    }
    $self->create_vgpu if $name eq 'ours';
    $self->start_guest if !$self->guest_runs;
    $self->attach if $name ne 'qemu';
    $self->wait_render_node(90)->wait(100);
    ($self->{address}) = $self->shell('readlink -f /sys/class/drm/renderD128/device', 30)
        =~ m{(\w{4}:\w\w:\w\w\.\w)(?:/virtio\d+)?\s*$} or die "$name: no GPU in the guest\n";
    return $self;
}

sub guest_runs {
    my ($self) = @_;
    VGPU::Command::run([VGPU::Lab::rig('guest', $self->{guest}, 'run', 'true')], timeout => 30, fail => 1);
    return $VGPU::Command::status == 0;
}

# The kernel's words are those of the rig's guests, except that a root port has room for the GPU's BAR
# of 1 GiB. QEMU takes the last -append.
sub start_guest {
    my ($self) = @_;
    my $address = '10.77.0.' . (50 + $self->{number} + ($self->{name} eq 'qemu' ? 10 : 0));
    my $words = 'console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off nokaslr no_timer_check'
        . ' modprobe.blacklist=lpc_ich,pcspkr,iTCO_wdt,i2c_i801 pci=hpmmioprefsize=2G,hpmmiosize=2M,hpbussize=1'
        . " rig.net=$address/24,10.77.0.1 rig.init=/usr/local/lib/rig/init rig.host=$self->{guest}";
    VGPU::Lab::adopt_guest($self->{guest}, $address);
    VGPU::Command::run([VGPU::Lab::rig('guest', $self->{guest}, 'up', '--memory', '2G',
        '--image', $self->{image}, '--', '-append', $words, $self->{name} eq 'qemu' ? @qemu_options : ())], timeout => 300);
    VGPU::Command::run([VGPU::Lab::rig('guest', $self->{guest}, 'put', @programs, '/usr/local/bin/')], timeout => 60);
    return;
}

# Gives the GPU to a driver of L1.
sub bind_gpu {
    my ($driver) = @_;
    VGPU::Lab::host(<<"SH", timeout => 60);
set -e
cd /sys/bus/pci/devices/$gpu
now=\$(basename "\$(readlink driver || true)")
[ "\$now" != $driver ] || exit 0
modprobe $driver 2>/dev/null || true
[ -z "\$now" ] || echo $gpu >driver/unbind
if [ $driver = vfio-pci ]; then echo vfio-pci; else echo; fi >driver_override
echo $gpu >/sys/bus/pci/drivers_probe
[ $driver = vfio-pci ] || timeout 30 sh -c 'until [ -e /dev/dri/renderD128 ]; do sleep 0.1; done'
SH
    return;
}

# mdevctl define and start, and the engine ready: the operator's waiting time.
sub create_vgpu {
    my ($self) = @_;
    my $uuid = $self->{uuid} = sprintf 'c0ffee00-0000-4000-8000-%012d', $self->{number};
    my $times = VGPU::Lab::host(<<"SH", timeout => 120);
set -e
timeout 60 sh -c 'until [ -e /sys/class/mdev_bus/$gpu/mdev_supported_types/$type ]; do sleep 0.1; done'
begin=\$(date +%s%N)
mdevctl define -u $uuid -p $gpu -t $type
mdevctl start -u $uuid
made=\$(date +%s%N)
timeout 60 sh -c 'until grep -q engine=ready /sys/bus/mdev/devices/$uuid/vgpu/state; do sleep 0.02; done'
echo times \$((made - begin)) \$((\$(date +%s%N) - begin))
SH
    my ($made, $ready) = $times =~ /times (\d+) (\d+)/ or die "no times in:\n$times";
    $self->{took}{'define-start'} = $made / 1e6;
    $self->{took}{'engine-ready'} = $ready / 1e6;
    return;
}

sub wait_render_node {
    my ($self, $limit) = @_;
    return $self->job("timeout $limit sh -c 'until [ -e /dev/dri/renderD128 ]; do sleep 0.02; done'; echo there");
}

sub monitor {
    my ($self, @words) = @_;
    return VGPU::Command::run([VGPU::Lab::rig('guest', $self->{guest}, 'monitor', @words)], timeout => 60);
}

sub attach {
    my ($self) = @_;
    my $device = $self->{uuid} ? "sysfsdev=/sys/bus/mdev/devices/$self->{uuid}" : "host=$gpu";
    my $there = $self->wait_render_node(90);
    sleep 1;
    my $begin = time;
    my $said = $self->monitor("device_add vfio-pci,$device,bus=rp1,id=gpu");
    die "device_add: $said" if $said =~ /^Error/m;
    $there->wait(100);
    $self->{took}{attach} = (time - $begin) * 1e3;
    return;
}

# Until QEMU has released it, which it does when the guest has.
sub detach {
    my ($self) = @_;
    my $begin = time;
    $self->monitor('device_del gpu');
    my $pid = "\$(cat /run/rig/guests/$self->{guest}/pid)";
    VGPU::Lab::host("timeout 60 sh -c \"while ls -l /proc/$pid/fd | grep -q vfio-device; do sleep 0.05; done\"", timeout => 70);
    $self->{took}{detach} = (time - $begin) * 1e3;
    return;
}

sub argv {
    my ($self, $command) = @_;
    my @where = $self->{name} eq 'native' ? ('run') : ('guest', $self->{guest}, 'run');
    return [VGPU::Lab::rig(@where, '--', 'sh', '-c', $command)];
}

sub job {
    my ($self, $command) = @_;
    return VGPU::Command::start($self->argv($command), name => "[$self->{name}] $command");
}

sub shell {
    my ($self, $command, $timeout) = @_;
    return $self->job($command)->wait($timeout);
}

# A command that sees only this GPU.
sub start { my ($self, $command) = @_; return $self->job("exec on-gpu $self->{address} $command") }
sub run { my ($self, $command, $timeout) = @_; return $self->start($command)->wait($timeout) }

# Interrupts of the GPU's control queue where the program runs; VM exits of its guest; and, of a vGPU,
# what the driver counted.
sub counters {
    my ($self) = @_;
    my %now;
    my ($line) = $self->shell("cd /sys/bus/pci/devices/$self->{address} && grep \"\$(ls -d virtio* | head -n 1)-control\""
        . ' /proc/interrupts', 30) =~ /^\s*\d+:\s+(.*)/;
    $now{interrupts} += $_ for grep { /^\d+$/ } split ' ', $line // '';
    return \%now if $self->{name} eq 'native';
    my $text = VGPU::Lab::host("cat /sys/kernel/debug/kvm/\$(cat /run/rig/guests/$self->{guest}/pid)-*/exits"
        . ($self->{uuid} ? "; cd /sys/bus/mdev/devices/$self->{uuid}/vgpu; grep . doorbells requests window_faults" : ''));
    ($now{exits}) = $text =~ /^(\d+)$/m;
    $now{$1} = $2 while $text =~ /^(\w+):(\d+)$/mg;
    return \%now;
}

sub close {
    my ($self) = @_;
    return if $self->{name} eq 'native';
    return $self->abandon if $self->{name} eq 'qemu';
    $self->detach;
    $self->remove_vgpu;
    return;
}

sub remove_vgpu {
    my ($self) = @_;
    VGPU::Lab::host("mdevctl stop -u $self->{uuid}; mdevctl undefine -u $self->{uuid}", fail => 1) if $self->{uuid};
    return;
}

# Removes what is there, in whatever state: the guest, too.
sub abandon {
    my ($self) = @_;
    return if $self->{name} eq 'native';
    VGPU::Command::run([VGPU::Lab::rig('guest', $self->{guest}, 'down')], timeout => 60, fail => 1);
    $self->remove_vgpu;
    return;
}

1;
