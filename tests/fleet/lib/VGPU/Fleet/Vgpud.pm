# SPDX-License-Identifier: MIT
# The real vgpud for the one node of a cluster (VGPU::Fleet), as on a host without VMs: on a bus of its own, with
# arbiters and the governor's layer, on GPUs in software.
#
#   my $vgpud = VGPU::Fleet::Vgpud->new(vram => 8192, cards => 2);
#   my $fleet = VGPU::Fleet->new($vgpud->cluster);
#   $vgpud->up($fleet);
package VGPU::Fleet::Vgpud;

use strict;
use warnings;

use File::Path qw(make_path);
use VGPU::Fleet;

my ($root, $build) = ('/run/host', '/src/build');
my $program = "env DBUS_SYSTEM_BUS_ADDRESS=unix:path=$root/bus VGPU_ROOT=$root $build/fleet/vgpu-slurm";
my $log = '/run/fleet/log/vgpu-slurm';

sub put {
    my ($path, @text) = @_;
    make_path("$root$path" =~ s{/[^/]+$}{}r);
    return VGPU::Fleet::write_file("$root$path", @text);
}

# The name of a GPU, by its number among Slurm's cards.
sub gpu { my ($self, $card) = @_; return 'soft:live' . ($card || '') }
sub gpus { my ($self) = @_; return map { $self->gpu($_) } 0 .. $self->{cards} - 1 }

# vram: of each GPU, MiB. cards: how many (1). vgpu_conf: of the node.
sub new {
    my ($class, %is) = @_;
    my $self = bless { cards => 1, %is }, $class;
    $ENV{DBUS_SYSTEM_BUS_ADDRESS} = "unix:path=$root/bus";
    $ENV{VK_DRIVER_FILES} = '/usr/share/vulkan/icd.d/lvp_icd.json';
    $ENV{VK_IMPLICIT_LAYER_PATH} = "$build/governor/vulkan";
    $ENV{NODEVICE_SELECT} = 1;
    put('/etc/vgpu/gpus.conf', map { "[gpu $_]\nmode=shared\nvram=$is{vram}M\npool=slurm\n" } $self->gpus);
    put('/etc/vgpu/types.d/10.conf', "[type vgpu-half]\nvram=1/2\n");
    put('/etc/vgpu/slurm-cards', map { "$_ " . $self->gpu($_) . "\n" } 0 .. $self->{cards} - 1);
    put('/etc/vgpu/vgpu.conf', $is{vgpu_conf} // '');
    put('/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json', qq({"layer": {"library_path": "$build/governor/vulkan/libvgpu_governor.so"}}));
    symlink '/proc', "$root/proc" or die "proc: $!\n";
    make_path("$root/run/vgpu");
    # slurmstepd reads the jobs' files where they are without a root of its own.
    symlink "$root/run/vgpu", '/run/vgpu' or die "/run/vgpu: $!\n";
    return $self;
}

# For VGPU::Fleet->new().
sub cluster {
    my ($self) = @_;
    return (
        nodes => 1, cards => $self->{cards}, vram => $self->{vram}, model => 'soft',
        map { $_ => "$program $_ 2>>$log || exit 1\n" } qw(prolog epilog),
    );
}

sub vgpuctl { my ($self, @words) = @_; return (VGPU::Fleet::run_command("$build/host-agent/vgpuctl", @words))[0] }

sub start {
    my ($self) = @_;
    $self->{fleet}->daemon('vgpud', "$build/host-agent/vgpud", "--root=$root");
    return $self->{fleet}->wait_for('vgpud answers', sub { $self->{cards} == (() = $self->vgpuctl('gpu', 'list') =~ /^soft:\S+ +shared/mg) });
}

# systemd would start it for vgpud. It stays when vgpud is killed.
sub start_meter {
    my ($self) = @_;
    $self->{fleet}->daemon('meter', "$build/host-agent/vgpu-meter", "--root=$root");
    my @has_owner = qw(gdbus call --system -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.NameHasOwner org.mdev_vgpu.Meter1);
    return $self->{fleet}->wait_for('vgpu-meter has its name', sub { (VGPU::Fleet::run_command(@has_owner))[0] =~ /true/ });
}

sub kill {
    my ($self) = @_;
    my $pid = delete $self->{fleet}{pids}{vgpud};
    CORE::kill('KILL', $pid);
    return waitpid $pid, 0;
}

# For a cluster that is started later.
sub prepare {
    my ($self, $fleet) = @_;
    $self->{fleet} = $fleet;
    $fleet->prepare;
    $fleet->daemon('bus', 'dbus-daemon', '--session', '--nofork', '--nopidfile', "--address=$ENV{DBUS_SYSTEM_BUS_ADDRESS}");
    $fleet->wait_for('the bus', sub { -S "$root/bus" });
    $self->start;
    $self->start_meter;
    $fleet->daemon("arbiter$_", "$build/governor/vgpu-arbiter", "--root=$root", $self->gpu($_)) for 0 .. $self->{cards} - 1;
    return $self;
}

# The cluster, with vgpud before slurmd.
sub up {
    my ($self, $fleet) = @_;
    $self->prepare($fleet);
    $fleet->start;
    return $self;
}

sub slices { my ($self) = @_; return scalar(() = $self->vgpuctl('slice', 'list', '--no-headers') =~ /^\S/mg) }

# Per cent of its card that each slice is promised.
sub computes { my ($self) = @_; return manager('FindSlices', '{}') =~ /'Compute': <uint32 (\d+)>/g }

sub owners { my ($self) = @_; return sort map { /^(\S+)/ } split /\n/, $self->vgpuctl('owner', 'list', '--no-headers') }

sub manager {
    my ($method, @arguments) = @_;
    return (VGPU::Fleet::run_command(qw(gdbus call --system -d org.mdev_vgpu.Host1 -o /org/mdev_vgpu/manager -m), "org.mdev_vgpu.Host1.Manager.$method", @arguments))[0];
}

# What an owner has used so far, in gdbus' words.
sub used { my ($self, $owner) = @_; return manager('ReleaseOwner', $owner, "{'DryRun': <true>}") }

# A slice as vgpu-slurm would make it.
sub make_slice {
    my ($self, $owner, $mib) = @_;
    my $bytes = $mib << 20;
    return manager('CreateSlices', "[{'Owner': <'$owner'>, 'Part': <'0'>, 'Uid': <uint32 0>, 'Pool': <'slurm'>, 'Door': <'native'>, 'Vram': <uint64 $bytes>}]");
}

# A fatal error on a GPU's link, or none.
sub set_errors {
    my ($self, $card, $count) = @_;
    put('/sys/devices/virtual/vgpu-soft/' . $self->gpu($card) =~ s/^soft://r . '/aer_dev_fatal', "TOTAL_ERR_FATAL $count\n");
    return $self->vgpuctl('reload');
}

# vgpu-slurm that asks it, as words for a shell.
sub program { return $program }

# What is left of any job, as paths.
sub left { return (glob("$root/run/vgpu/owners/*"), glob("$root/run/vgpu/slurm/[0-9]*")) }

sub log_text { return VGPU::Fleet::read_file($log) }
sub show { my ($self, @more) = @_; return Test::More::diag(@more, log_text(), map { VGPU::Fleet::read_file("/run/fleet/log/$_.out") } qw(vgpud meter arbiter0)) }

1;
