# SPDX-License-Identifier: MIT
#
# VGPU::OnCard: what tests/cuda/on-card's steps are made of: an arbiter with slices, programs in them, and what the arbiter
# charges them.
package VGPU::OnCard;

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::UNIX ();
use JSON::PP ();
use List::Util qw(sum);
use POSIX ();
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);

our @EXPORT = qw(bench_json charged charged_for has_module has_program handovers kill_all load loads_of of_slice online pairs
    python run share start status tenants together with_slices end finish card_bytes probe write_file);

# What the steps are run with: see use_card().
my ($driver, $door, $top, $root, %started);
my $gpu = 'gpu0';

# Of the card: the folder of its driver, that of the door over it, and the project's.
sub use_card { ($driver, $door, $top) = @_; return }

sub write_file { my ($file, $text) = @_; open my $out, '>', $file or die "$file: $!\n"; print {$out} $text; return close $out }

# A program, in a process group of its own.
sub start {
    my ($env, @command) = @_;
    my $pid = open my $out, '-|';
    die "fork: $!\n" if !defined $pid;
    if (!$pid) {
        POSIX::setpgid(0, 0);
        open STDERR, '>&', \*STDOUT;
        @ENV{keys %$env} = values %$env;
        exec @command or print "$command[0]: $!\n";
        POSIX::_exit(127);
    }
    $started{$pid} = 1;
    return { pid => $pid, out => $out, name => "@command" };
}

# What it printed; dies if it failed.
sub finish {
    my ($job) = @_;
    local $/ = undef;
    my $text = readline($job->{out}) // '';
    close $job->{out};
    delete $started{ $job->{pid} };
    die "$job->{name}: status $?: $text\n" if $?;
    return $text;
}

sub end { my ($job) = @_; kill KILL => -$job->{pid}; return eval { finish($job) } }
sub run { return finish(start(@_)) }
sub kill_all { kill KILL => -$_ for keys %started; %started = (); return }

# Lines "NAME NUMBER".
sub pairs { my ($text) = @_; return { map { /^(\S+) (-?[\d.]+)$/ ? ($1 => $2 + 0) : () } split /\n/, $text } }

# The environment of a program in a slice; undef: without the door; a table: more of the environment, without the door. The
# driver's other libraries are found in its own place.
sub environment_of {
    my ($slice) = @_;
    return { LD_LIBRARY_PATH => $driver, %{ $slice // {} } } if !defined $slice || ref $slice;
    return { LD_LIBRARY_PATH => "$door:$top/build/governor:$driver", VGPU_GOVERNOR_SLICES => '', VGPU_GOVERNOR => 1,
        VK_IMPLICIT_LAYER_PATH => "$top/build/governor/vulkan",
        VGPU_GOVERNOR_SOCKET => "$root/run/vgpu/slices/$slice/governor.sock" };
}

# An arbiter with slices (name => lines of its file), for as long as $code takes. $of_gpu: lines of the GPU's file.
sub with_slices {
    my ($slices, $code, $of_gpu) = @_;
    $root = File::Temp->newdir('vgpu-on-card-XXXXXX', TMPDIR => 1);
    $ENV{FAKE_CUDA_CARD} = "$root/card";
    my $confs = "$root/run/vgpu/governor/$gpu/slices";
    make_path($confs, "$root/run/vgpu/slices");
    write_file("$root/run/vgpu/governor/$gpu/gpu.conf", "[gpu]\n" . ($of_gpu // ''));
    write_file("$confs/$_.conf", "[slice]\n$slices->{$_}") for keys %$slices;
    my $arbiter = start({}, 'build/governor/vgpu-arbiter', '--root', "$root", $gpu);
    my $value = eval {
        for my $name (keys %$slices) {
            my $tries = 0;
            until (-S "$root/run/vgpu/slices/$name/governor.sock") { $tries++ < 1000 ? sleep 0.01 : die "the arbiter has no slice $name\n" }
        }
        $code->("$root");
    };
    my $error = $@;
    end($arbiter);
    die $error if $error;
    return $value;
}

sub status {
    my $peer = IO::Socket::UNIX->new(Peer => "$root/run/vgpu/governor/$gpu/status.sock") or die "no status\n";
    local $/ = undef;
    return JSON::PP::decode_json(readline $peer);
}

sub of_slice { my ($slice) = @_; return (grep { $_->{id} eq $slice } @{ status()->{slices} })[0] }
sub charged { my ($slice) = @_; return of_slice($slice)->{vram_used} }

# What the arbiter has measured of handovers, and charged.
sub handovers {
    my $status = status();
    return { (map { $_ => $status->{$_} } qw(handover_ns least_lease_ns)),
        map { my $slice = $_; ($slice->{id} => { map { $_ => $slice->{$_} } qw(gpu_ns lead_ns depth_ns waited_ns throttled_ns submissions) }) } @{ $status->{slices} } };
}

# By the driver itself, in bytes.
sub card_bytes { return (has_program('nvidia-smi') ? run(environment_of(undef), 'nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits') : 0) << 20 }
sub has_program { my ($name) = @_; return scalar grep { -x "$_/$name" } split /:/, $ENV{PATH} }
sub has_module { my ($module) = @_; return eval { run({}, 'python3', '-c', "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)"); 1 } }

# Programs of the tests, in a slice.
sub probe { my ($slice, @words) = @_; return pairs(run(environment_of($slice), "$door/card-probe", @words)) }
sub load { my ($slice, @words) = @_; return start(environment_of($slice), "$door/cuda-load", @words) }
sub tenant { my ($slice, @words) = @_; return start(environment_of($slice), "$door/card-tenant", @words) }
sub python { my ($slice, @words) = @_; return start(environment_of($slice), 'python3', @words) }
sub program { my ($slice, @words) = @_; return start(environment_of($slice), @words) }
sub both_load { my ($slice, @words) = @_; return start(environment_of($slice), "$door/both-load", @words) }
sub bench_json { my ($slice, @words) = @_; return JSON::PP::decode_json(run(environment_of($slice), 'build/bench/governor-load/governor-load', @words)) }

# What a library that is preloaded says is in between.
sub loads_of {
    my @jobs = map { load(@$_) } @_;
    return [map { my $text = finish($_); $text =~ /^([\d.]+)/m ? $1 + 0 : die "no number: $text\n" } @jobs];
}

# Tenants that count the same seconds: each is [SLICE, KIND], and has $ready seconds to start. For how much of the time the
# card worked for each.
sub together {
    my ($seconds, $ready, @tenants) = @_;
    my $at = sprintf '%.3f', clock_gettime(CLOCK_MONOTONIC) + $ready;
    my @jobs = map { tenant(@$_, $seconds, $at) } @tenants;
    return [map { my $seen = pairs(finish($_)); ($seen->{work} // $seen->{copied}) / (defined $seen->{work} ? $seen->{of} : 1) } @jobs];
}

# What the slice was charged for, of the time that the card worked for it, while a tenant of this kind counts.
sub charged_for {
    my ($slice, $kind, $seconds) = @_;
    my $job = tenant($slice, $kind, $seconds);
    my ($before, $after, %seen);
    while (defined(my $line = readline $job->{out})) {
        $before = of_slice($slice)->{gpu_ns} if $line =~ /^counting/;
        $after //= of_slice($slice)->{gpu_ns} if $line =~ /^work/;
        $seen{$1} = $2 if $line =~ /^(\w+) ([\d.]+)$/;
    }
    finish($job);
    die "$kind printed no numbers\n" if !defined $after;
    return ($after - $before) / 1e9 / $seen{work};
}

# Latencies of an online tenant, in us, and what a tenant beside it, [SLICE, KIND], got of the card meanwhile.
sub online {
    my ($slice, $kind, $seconds, $beside) = @_;
    my $at = sprintf '%.3f', clock_gettime(CLOCK_MONOTONIC) + 3;
    my $other = $beside ? tenant(@$beside, $seconds, $at) : undef;
    my $seen = pairs(finish(tenant($slice, $kind, $seconds, $at)));
    my $work = $other ? pairs(finish($other)) : undef;
    return { %$seen, $work ? (beside => $work->{work} / $work->{of}) : () };
}

sub share { my ($each) = @_; return 100 * $each->[0] / sum(@$each) }

1;
