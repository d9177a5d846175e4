# SPDX-License-Identifier: MIT
# A VM whose CUDA programs lend memory of the VM's own to the GPU: its vGPU is of a type with CUDA, on L1's second GPU at
# the fake NVIDIA driver (VGPU::FakeNvidia), and has a window that is less than what they lend.
package VGPU::Lender;

use strict;
use warnings;

use VGPU::Command;
use VGPU::FakeNvidia;
use VGPU::GuestCuda;
use VGPU::Lab;
use VGPU::Slice;
use VGPU::Vgpu;

my $type_file = '/etc/vgpu/types.d/60-lent.conf';
my $memfd = "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>";

sub host { return VGPU::Lab::host(@_) }

# Makes the vGPU, and starts the tenant's VM again with memory that can be lent.
sub new {
    my ($class, $tenant) = @_;
    my $self = bless { tenant => $tenant }, $class;
    my $gpu = VGPU::FakeNvidia::gpu();
    VGPU::Command::run([VGPU::Lab::rig('build', '--', 'make', '-s', 'guest-cuda', map { "build/$_" } qw(cuda-test/remote-client bench/window-memory))],
        timeout => 900, name => '[build] make guest-cuda');
    VGPU::FakeNvidia::install();
    host("cat >$type_file", stdin => "[type lent]\nvram=1/4\nwindow=32M\ngpu=$gpu\n");
    VGPU::FakeNvidia::share();
    my ($type) = host("ls /sys/bus/pci/devices/$gpu/mdev_supported_types") =~ /^(\S+-lent)$/m;
    $self->{vgpu} = my $vgpu = VGPU::Vgpu->new(3, $type // die "no such type\n");
    VGPU::FakeNvidia::set_unit($vgpu->{unit}, '/usr/bin/vgpu-engine --fd=3 --shader-cache=/run/vgpu/shaders', 'FAKE_CUDA_CONTENT=1');
    $vgpu->start($gpu);
    $vgpu->wait_engine;
    host("vgpuctl slice set $vgpu->{uuid} --vram 64M", timeout => 120);
    $tenant->detach($tenant->{vgpu});
    $self->start_with($memfd);
    return $self;
}

# The VM with other memory: a line of its domain, or ''.
sub start_with {
    my ($self, $backing) = @_;
    my $tenant = $self->{tenant};
    my $xml = host("cat /run/$tenant->{name}.xml");
    $xml =~ s{<vcpu>}{$backing<vcpu>} or die $xml;
    $tenant->destroy;
    host('cat >/run/lent.xml && virsh -q define /run/lent.xml && virsh -q start ' . $tenant->{name}, stdin => $xml, timeout => 240);
    $tenant->wait_up;
    $tenant->attach($self->{vgpu});
    VGPU::GuestCuda::put_programs($tenant);
    VGPU::GuestCuda::put($tenant, 'build/bench/window-memory');
    return;
}

# Of the VM's memory, what the vGPU has pinned.
sub pinned { my ($self) = @_; return $self->{vgpu}->attribute('pinned_bytes') }
sub workers { my ($self) = @_; return keys %{ VGPU::GuestCuda::workers($self->{vgpu}) } }

sub nothing_left {
    my ($self) = @_;
    VGPU::Slice::soon(sub { !$self->workers }, 'a worker is left');
    VGPU::Slice::soon(sub { $self->pinned < 2**20 }, 'memory is pinned still');
    return '';
}

# A program that lends, and checks what it computes, to its end.
sub lends {
    my ($self) = @_;
    VGPU::GuestCuda::run($self->{tenant}, 'lent', timeout => 400);
    return $self->nothing_left;
}

# One that holds what it has lent, 40 MiB, until it loses its worker.
sub holds { my ($self) = @_; return VGPU::GuestCuda::start($self->{tenant}, 'hold-lent') }

# The guest has all of its memory for itself: what a GPU still wrote there would be found.
sub memory_is_the_guests {
    my ($self) = @_;
    return $self->{tenant}->run('head -c 100M /dev/zero >/dev/shm/all && cmp -n 104857600 /dev/shm/all /dev/zero && rm /dev/shm/all && echo all zeros', timeout => 240);
}

# As the rig was before.
sub end {
    my ($self) = @_;
    my $tenant = $self->{tenant};
    $tenant->detach($self->{vgpu});
    $self->{vgpu}->remove;
    host("rm $type_file; virsh -q define /run/$tenant->{name}.xml");
    VGPU::FakeNvidia::remove();
    $tenant->attach($tenant->{vgpu});
    return;
}

1;
