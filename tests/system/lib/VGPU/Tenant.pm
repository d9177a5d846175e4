# SPDX-License-Identifier: MIT
# Tenants' VMs in L1: libvirt domains with the stock qemu.conf, under KVM, with the rig's guest image (stock
# Debian kernel and Mesa). Commands in a guest go through `rig guest`.
#
# The firmware decides the room for the vGPU's window behind a hotplugged root port. SeaBIOS gives 32 GiB
# per port if the VM has memory above 4 GiB and 46 address bits. OVMF would, too, but in the rig its
# interrupt handler, which writes CR8, runs into an assertion of the outer QEMU's TCG.
package VGPU::Tenant;

use strict;
use warnings;

use Time::HiRes qw(sleep time);
use VGPU::Command;
use VGPU::KernelLog;
use VGPU::Lab;

my %numbers = (red => 101, blue => 102);
my $images = '/var/lib/libvirt/images';

# $image: one of the rig's guest images; Debian 13 if none is named.
sub new {
    my ($class, $name, $image) = @_;
    my $number = $numbers{$name} // die "no tenant is called $name\n";
    return bless {
        name => $name,
        image => $image // 'trixie',
        number => $number,
        address => "10.77.0.$number",
        console => "/var/log/libvirt/qemu/$name-console.log",
        gpu => {},
    }, $class;
}

# Modules for hardware that q35 always has and no test uses: udev would load each, and its dependencies, at
# every boot.
my $without = 'lpc_ich,pcspkr,iTCO_wdt,i2c_i801,i2c_smbus,psmouse,ahci,ata_generic';

# Debian 13 with another kernel has that kernel's modules on a disk of their own.
sub has_kernel_disk { my ($self) = @_; return $self->{image} =~ /\A(?:backports|bookworm)\z/ }

# An overlay over a disk of L1.
sub disk_xml {
    my ($self, $serial, $target) = @_;
    my $place = uc $serial;
    return <<"XML";
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe'/>
      <source file='$images/$self->{name}-$serial.qcow2'/>
      <backingStore type='block'>
        <format type='raw'/>
        <source dev='$place'/>
        <backingStore/>
      </backingStore>
      <target dev='$target' bus='virtio'/>
      <serial>$serial</serial>
    </disk>
XML
}

sub domain_xml {
    my ($self) = @_;
    my $name = $self->{name};
    my $init = $VGPU::Lab::guest_init;
    my $stall = VGPU::Command::patience(21);
    my $mac = sprintf '52:54:00:77:00:%02x', $self->{number};
    my $ports = join "\n", map { "    <controller type='pci' index='$_' model='pcie-root-port'/>" } 1 .. 10;
    my $disks = $self->disk_xml('root', 'vda') . ($self->has_kernel_disk ? $self->disk_xml('kernel', 'vdb') : '');
    return <<"XML";
<domain type='kvm'>
  <name>$name</name>
  <uuid>7e9a0000-0000-4000-8000-000000000$self->{number}</uuid>
  <memory unit='MiB'>3072</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>BOOT/boot/rig/vmlinux</kernel>
    <initrd>BOOT/boot/rig/initrd</initrd>
    <cmdline>console=ttyS0 loglevel=5 log_buf_len=1M panic=-1 net.ifnames=0 mitigations=off no_timer_check rcupdate.rcu_cpu_stall_timeout=$stall modprobe.blacklist=$without rig.net=$self->{address}/24,10.77.0.1 rig.init=$init rig.host=$name</cmdline>
  </os>
  <features><acpi/><apic/></features>
  <cpu mode='host-passthrough'><maxphysaddr mode='emulate' bits='46'/></cpu>
  <devices>
    <controller type='usb' model='none'/>
    <controller type='pci' index='0' model='pcie-root'/>
$ports
$disks
    <interface type='bridge'>
      <source bridge='rigbr0'/>
      <mac address='$mac'/>
      <model type='virtio'/>
    </interface>
    <serial type='pty'><log file='$self->{console}' append='off'/></serial>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <video><model type='none'/></video>
    <memballoon model='none'/>
  </devices>
</domain>
XML
}

# Defines the domains and starts them, side by side; does not wait until they are up.
sub start {
    my (@tenants) = @_;
    my $script = "set -e\n";
    for my $self (@tenants) {
        my $name = $self->{name};
        $script .= <<"SH" . $self->domain_xml . "XML\n";
disks=\$(/usr/local/lib/rig/guest disks $self->{image})
eval "\$disks"
rm -f $self->{console}
qemu-img create -q -f qcow2 -F raw -b \$root $images/$name-root.qcow2
[ -z "\$kernel" ] || qemu-img create -q -f qcow2 -F raw -b \$kernel $images/$name-kernel.qcow2
sed "s,ROOT,\$root,; s,KERNEL,\$kernel,; s,BOOT,\$boot," >/run/$name.xml <<'XML'
SH
        VGPU::Lab::adopt_guest($name, $self->{address});
    }
    my @names = map { $_->{name} } @tenants;
    $script .= VGPU::KernelLog::follow_consoles(map { $_->{console} } map { VGPU::Tenant->new($_) } sort keys %numbers);
    $script .= <<"SH";
for name in @names; do virsh -q define /run/\$name.xml; done
pids=
for name in @names; do virsh -q start \$name & pids="\$pids \$!"; done
for pid in \$pids; do wait \$pid; done
SH
    VGPU::Lab::host($script, timeout => 240);
    return;
}

# Waits until the guest runs commands; returns its kernel's version. The guest says on its console that it
# is up, each time it boots.
sub wait_up {
    my ($self, $timeout) = @_;
    my $limit = $timeout // 300;
    my $inside = VGPU::Command::patience($limit);
    my $boots = $self->{boots} // 1;
    VGPU::Lab::host(<<"SH", timeout => $limit + 20);
timeout $inside sh -c 'until [ \$(grep -c "rig: .* is up" $self->{console}) -ge $boots ]; do sleep 0.5; done' ||
    { tail -n 20 $self->{console}; exit 1; }
SH
    my $kernel = $self->run('uname -r', timeout => 120);
    chomp $kernel;
    return $kernel;
}

# Runs $code, which reboots the guest. Connections to it are cut; wait_up() then waits for the new boot.
sub boots_by {
    my ($self, $code) = @_;
    my $boots = VGPU::Lab::host("grep -c 'rig: .* is up' $self->{console}", fail => 1);
    $code->();
    VGPU::Lab::hang_up($self->{name});
    $self->{boots} = 1 + $boots;
    return;
}

# The reset button.
sub reset {
    my ($self) = @_;
    $self->boots_by(sub { VGPU::Lab::host("virsh reset $self->{name}") });
    return;
}

# A command that ends the guest from inside, after it has confirmed its start. The connection ends then, and
# the hang-up must not kill the shell before it reaches the command.
sub ends_by {
    my ($self, $command) = @_;
    $self->boots_by(sub { $self->job("trap '' HUP PIPE; sync; echo now; sleep 1; $command")->expect(qr/now/, 60) });
    return;
}

# An orderly reboot without an orderly shutdown.
sub reboot {
    my ($self) = @_;
    $self->ends_by('reboot -f');
    return;
}

# A panic; the guest restarts by itself (panic=-1 on its command line).
sub crash {
    my ($self) = @_;
    $self->ends_by('echo c >/proc/sysrq-trigger');
    return;
}

sub state {
    my ($self) = @_;
    my $state = VGPU::Lab::host("virsh domstate $self->{name} 2>&1", fail => 1);
    $state =~ s/\s+\z//;
    return $state;
}

# A shell command in the guest: run to its end, or started.
sub run {
    my ($self, $command, %opt) = @_;
    return VGPU::Command::run($self->argv($command), name => "[$self->{name}] $command", remote => 1, %opt);
}

sub job {
    my ($self, $command) = @_;
    return VGPU::Command::start($self->argv($command), name => "[$self->{name}] $command", remote => 1);
}

sub argv {
    my ($self, $command) = @_;
    return VGPU::Lab::remote_argv($self->{name}, $command);
}

sub put {
    my ($self, @files) = @_;
    my $place = pop @files;
    VGPU::Command::run([VGPU::Lab::rig('guest', $self->{name}, 'put', @files, $place)],
        timeout => 120);
    return;
}

sub hostdev_xml {
    my ($uuid) = @_;
    return <<"XML";
<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='off'>
  <source><address uuid='$uuid'/></source>
</hostdev>
XML
}

# Attaches a vGPU to the running VM and waits until the guest's driver has made a render node of it. Returns
# the device's PCI address in the guest.
sub attach {
    my ($self, $vgpu) = @_;
    my @before = $self->gpus;
    VGPU::Lab::host("virsh attach-device $self->{name} /dev/stdin --live",
        stdin => hostdev_xml($vgpu->{uuid}), timeout => 120);
    my ($new) = $self->wait_gpus(@before);
    return $self->{gpu}{ $vgpu->{uuid} } = $new;
}

# Detaches it and waits until the guest has released it.
sub detach {
    my ($self, $vgpu) = @_;
    my $gpu = delete $self->{gpu}{ $vgpu->{uuid} };
    VGPU::Lab::host("virsh detach-device $self->{name} /dev/stdin --live",
        stdin => hostdev_xml($vgpu->{uuid}), timeout => 60);
    my $end = time + 90;
    while (time < $end) {
        return $gpu if VGPU::Lab::host("virsh dumpxml $self->{name}") !~ /$vgpu->{uuid}/;
        sleep 0.5;
    }
    die "$self->{name}: 90 s after detach-device the guest still has the vGPU\n";
}

# Whether the VM has it, by libvirt.
sub has {
    my ($self, $vgpu) = @_;
    VGPU::Lab::host("virsh dumpxml $self->{name} | grep -q $vgpu->{uuid}", fail => 1);
    return $VGPU::Command::status == 0;
}

# Rebinds the guest's driver to the only vGPU of the VM; what its engine has lost is forgotten then. A
# driver whose probe failed when the engine died is bound for the first time.
sub rebind {
    my ($self, $vgpu) = @_;
    $self->run(<<'SH', timeout => 120);
cd /sys/bus/pci/drivers/virtio-pci || exit 1
for device in /sys/bus/pci/devices/*; do
    [ "$(cat $device/vendor $device/device)" = "0x1af4
0x1050" ] || continue
    gpu=${device##*/}
    [ ! -e $gpu ] || { echo $gpu >unbind; sleep 1; }
    echo $gpu >bind
done
SH
    return $self->find_gpu($vgpu);
}

# The address in the guest of a vGPU that the VM has already, as after a boot; undef if it has none.
sub find_gpu {
    my ($self, $vgpu) = @_;
    return if !$self->has($vgpu);
    my ($only, @more) = $self->wait_gpus;
    die "$self->{name} has several vGPUs\n" if @more;
    return $self->{gpu}{ $vgpu->{uuid} } = $only;
}

# Waits until the guest has a GPU with a render node that is not among @known; returns all such.
sub wait_gpus {
    my ($self, @known) = @_;
    my %known = map { $_ => 1 } @known;
    my $end = time + 90;
    while (time < $end) {
        my @new = grep { !$known{$_} } $self->gpus;
        return @new if @new;
        sleep 0.5;
    }
    die "$self->{name}: no render node after 90 s; the guest says:\n"
        . $self->run('dmesg | tail -n 15', fail => 1);
}

sub gpu_of {
    my ($self, $vgpu) = @_;
    return $self->{gpu}{ $vgpu->{uuid} } // die "$self->{name} does not have $vgpu->{uuid}\n";
}

# PCI addresses of the guest's virtio GPUs that have a render node.
sub gpus {
    my ($self) = @_;
    my $links = $self->run('readlink -f /sys/class/drm/renderD*/device || true', timeout => 60);
    return map { m{/([0-9a-f]{4}:[0-9a-f:.]+)(?:/virtio\d+)?$} ? $1 : () } split /\n/, $links;
}

sub destroy {
    my ($self) = @_;
    VGPU::Lab::host("virsh destroy $self->{name}", fail => 1);
    VGPU::Lab::hang_up($self->{name});
    $self->{gpu} = {};
    delete $self->{boots};
    return;
}

1;
