# SPDX-License-Identifier: MIT
# The machine below the rig: which of its processors run L1 and which the GPU, and the processor time of
# both. That is the time of the whole host, whatever part of it does the work.
package Bench::Outer;

use strict;
use warnings;

use IO::Socket::UNIX;
use JSON::PP ();
use POSIX ();
use VGPU::Command;
use VGPU::Lab;

sub directory {
    my $dir = VGPU::Command::run([VGPU::Lab::rig('path', 'run')]);
    chomp $dir;
    return $dir;
}

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or return;
    local $/ = undef;
    return <$in>;
}

# All processes of the rig: its QEMU, the GPU's render servers, and what started them.
sub processes {
    my ($first) = split ' ', slurp(directory() . '/pid') // die "the rig is not up\n";
    my %children;
    for my $stat (glob '/proc/[0-9]*/stat') {
        my $text = slurp($stat) // next;
        $text =~ /^(\d+) \(.*\) \S (\d+)/s and push @{ $children{$2} }, $1;
    }
    my @all = ($first);
    for (my $i = 0; $i < @all; $i++) { push @all, @{ $children{ $all[$i] } // [] } }
    return @all;
}

# Seconds of their processor time, with their ended children.
sub cpu_seconds {
    my $ticks = 0;
    for my $pid (processes()) {
        my $text = slurp("/proc/$pid/stat") // next;
        my @fields = split ' ', $text =~ s/.*\) //sr;
        $ticks += $_ for @fields[11 .. 14];
    }
    return $ticks / POSIX::sysconf(&POSIX::_SC_CLK_TCK);
}

sub qmp {
    my ($command) = @_;
    my $socket = IO::Socket::UNIX->new(directory() . '/qmp') or die "QMP: $!\n";
    <$socket>;
    my $answer;
    for my $name ('qmp_capabilities', $command) {
        print {$socket} qq({"execute":"$name"}\n);
        do { $answer = JSON::PP::decode_json(scalar <$socket>) } until exists $answer->{return};
    }
    return $answer->{return};
}

# Threads that run L1's processors, by their ids outside. QEMU knows them by those in its own namespace.
sub cpu_threads {
    my %inside = map { $_->{'thread-id'} => 1 } @{ qmp('query-cpus-fast') };
    my @threads;
    for my $status (map { glob "/proc/$_/task/*/status" } processes()) {
        my ($thread) = $status =~ m{task/(\d+)/};
        my $text = slurp($status) // next;
        next if $text !~ /^Name:\s*qemu/m;
        push @threads, $thread if $text =~ /^NSpid:.*\t(\d+)$/m && $inside{$1};
    }
    return @threads;
}

# L1's processors on one half of this machine's, everything else of the rig, the GPU above all, on the
# other. Render workers that start later inherit that from their parents.
sub pin {
    my $cpus = cpus();
    return if $cpus < 2;
    my $half = int($cpus / 2);
    affinity("$half-" . ($cpus - 1), '-a', $_) for processes();
    affinity('0-' . ($half - 1), $_) for cpu_threads();
    return;
}

sub unpin {
    my $last = cpus() - 1;
    affinity("0-$last", '-a', $_) for processes();
    return;
}

# Of a process or thread; one that has ended meanwhile is ignored.
sub affinity {
    my ($list, @which) = @_;
    my $id = pop @which;
    VGPU::Command::run(['taskset', @which, '-c', '-p', $list, $id], fail => 1);
    return;
}

sub cpus {
    my ($cpus) = VGPU::Command::run(['nproc', '--all']) =~ /(\d+)/;
    return $cpus;
}

1;
