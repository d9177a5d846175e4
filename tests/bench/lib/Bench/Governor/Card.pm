# SPDX-License-Identifier: MIT
# One GPU with an arbiter of its own and slices, below a directory that is removed at the end.
package Bench::Governor::Card;

use strict;
use warnings;

use File::Path qw(make_path);
use File::Temp ();
use Time::HiRes qw(sleep time);
use Bench::Governor::Load;

our $arbiter = 'build/governor/vgpu-arbiter';
# As vgpu-arbiter@.service starts it.
my @as_its_unit = ('chrt', '-r', 1);
our $layers = 'build/governor/vulkan';
my $gpu = '0000:00:02.0';
my $patience = 5;

# Whether there is a governor to measure.
sub is_there { return -x $arbiter && glob "$layers/*.json" }

# $slices: settings by slice, as in slices/<id>.conf.
sub new {
    my ($class, $slices, $policy) = @_;
    my $self = bless { root => File::Temp->newdir('vgpu-bench-XXXXXX', TMPDIR => 1) }, $class;
    make_path($self->path("governor/$gpu/slices"), $self->path('slices'));
    write_conf($self->path("governor/$gpu/gpu.conf"), 'gpu', { policy => $policy // 'shares', vram => 16 << 30 });
    $self->set($_, $slices->{$_}) for sort keys %$slices;
    $self->{arbiter} = Bench::Governor::Load::start('arbiter', {}, @as_its_unit, $arbiter, '--root', "$self->{root}", $gpu);
    $self->wait_for_socket($_) for sort keys %$slices;
    return $self;
}

sub path { my ($self, $name) = @_; return "$self->{root}/run/vgpu/$name" }

sub write_conf {
    my ($file, $group, $settings) = @_;
    open my $out, '>', "$file.part" or die "$file.part: $!\n";
    print {$out} "[$group]\n", map { "$_=$settings->{$_}\n" } sort keys %$settings;
    close $out or die "$file.part: $!\n";
    rename "$file.part", $file or die "$file: $!\n";
    return;
}

sub set {
    my ($self, $slice, $settings) = @_;
    write_conf($self->path("governor/$gpu/slices/$slice.conf"), 'slice', $settings);
    return;
}

sub socket_path { my ($self, $slice) = @_; return $self->path("slices/$slice/governor.sock") }

sub wait_for_socket {
    my ($self, $slice) = @_;
    my $begin = time;
    while (!-S $self->socket_path($slice)) {
        die "the arbiter made no socket for $slice within $patience s\n" if time - $begin > $patience;
        sleep 0.01;
    }
    return;
}

# The environment of a slice's tenant.
sub env {
    my ($self, $slice) = @_;
    return {
        VK_IMPLICIT_LAYER_PATH => $layers,
        VGPU_GOVERNOR => 1,
        VGPU_GOVERNOR_SOCKET => $self->socket_path($slice),
    };
}

sub status {
    my ($self) = @_;
    require IO::Socket::UNIX;
    my $peer = IO::Socket::UNIX->new(Peer => $self->path("governor/$gpu/status.sock")) or return;
    local $/ = undef;
    return readline $peer;
}

sub stop {
    my ($self) = @_;
    kill TERM => $self->{arbiter}{pid};
    $self->{arbiter}->reap;
    Bench::Governor::Machine::leave('arbiter');
    return;
}

1;
