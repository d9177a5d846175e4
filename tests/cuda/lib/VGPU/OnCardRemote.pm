# SPDX-License-Identifier: MIT
#
# VGPU::OnCardRemote: the steps of tests/cuda/on-card --remote: programs that have no driver but a worker's, beside the same ones
# natively and in a slice by the door.
package VGPU::OnCardRemote;

use strict;
use warnings;

use List::Util qw(sum);
use Time::HiRes qw(sleep time);

use VGPU::OnCard;

# @opt: top, driver, door, libraries (folders of NVIDIA's libraries), seconds, fake.
my %opt;
my $slice_root;
my $client = 'build/cuda-test/remote-client';

sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[@sorted / 2] }

# The environment of a program whose driver is the worker's of this slice.
sub by_worker { my ($slice) = @_; return { LD_LIBRARY_PATH => "$opt{top}/build/cuda-remote:$opt{libraries}", VGPU_CUDA_SOCKET => "$slice_root/cuda-$slice.sock" } }
sub natively { return { LD_LIBRARY_PATH => "$opt{driver}:$opt{libraries}" } }

# Slices, each with a socket whose programs get a worker that is a member of it. $code gets the listeners, by slice.
sub with_workers {
    my ($slices, $code) = @_;
    return with_slices($slices, sub {
        ($slice_root) = @_;
        my %listeners;
        for my $slice (sort keys %$slices) {
            $listeners{$slice} = start({ VGPU_GOVERNOR => 1, VGPU_GOVERNOR_SLICES => '', VGPU_GOVERNOR_REQUIRED => 1,
                LD_LIBRARY_PATH => "$opt{top}/build/governor:$opt{driver}", VGPU_GOVERNOR_SOCKET => "$slice_root/run/vgpu/slices/$slice/governor.sock" },
                "$opt{top}/build/cuda-remote/vgpu-cuda-worker", '--listen', "$slice_root/cuda-$slice.sock", '--library', "$opt{door}/libcuda.so.1");
            my $tries = 0;
            until (-S "$slice_root/cuda-$slice.sock") { $tries++ < 500 ? sleep 0.01 : die "the workers of $slice do not listen\n" }
        }
        my $value = eval { $code->(\%listeners) };
        my $error = $@;
        end($_) for values %listeners;
        die $error if $error;
        return $value;
    });
}

sub micro_once { my ($slice) = @_; return pairs(run(VGPU::OnCard::environment_of($slice), "$opt{door}/card-micro", $opt{fake} ? 50 : 1)) }

# Each row three times, natively, by the door and by the worker in turn; the medians.
sub micro {
    my %seen;
    with_workers({ a => '' }, sub {
        for (1 .. 3) {
            push @{ $seen{native} }, micro_once(undef);
            push @{ $seen{door} }, micro_once('a');
            push @{ $seen{remote} }, micro_once(by_worker('a'));
        }
    });
    my %rows;
    print "    the fake card takes no time: these ratios are those of this machine's processors\n" if $opt{fake};
    for my $row (sort keys %{ $seen{native}[0] }) {
        my %of = map { my $way = $_; ($way => median(map { $_->{$row} } @{ $seen{$way} })) } keys %seen;
        $of{ratio} = $row =~ /-gib$/ ? $of{remote} / $of{native} : $of{native} / $of{remote};
        $of{plus} = $of{remote} - $of{native};
        printf "    %-20s native %10.3f  door %10.3f  remote %10.3f  ratio %.3f\n", $row, @of{qw(native door remote ratio)};
        $rows{$row} = \%of;
    }
    return \%rows;
}

my %micro_goals = (
    'launch-us.ratio' => [0.91, undef],
    'launch-call-us.remote' => [undef, 0.15],
    'launch-wait-us.plus' => [undef, 0.8],
    'query-us.plus' => [undef, 0.5],
    'event-query-us.plus' => [undef, 0.6],
    'context-us.remote' => [undef, 0.02],
    'pointer-us.remote' => [undef, 0.02],
    'allocate-us.ratio' => [0.99, undef],
    'copy-4-kib-us.ratio' => [0.90, undef],
    'pinned-there-gib.ratio' => [0.99, undef],
    'pinned-back-gib.ratio' => [0.99, undef],
    'pageable-there-gib.ratio' => [1, undef],
    'pageable-back-gib.ratio' => [0.95, undef],
    'graph-us.ratio' => [0.99, undef],
    'start-ms.plus' => [undef, 30],
);

# NVIDIA's runtime in a program: its first calls' results, 0 if all is well.
my $runtime = <<'END';
import ctypes, sys
for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
    try:
        runtime = ctypes.CDLL(name)
        break
    except OSError:
        runtime = None
if not runtime:
    sys.exit("no libcudart.so")
count, at = ctypes.c_int(), ctypes.c_void_p()
print("count", runtime.cudaGetDeviceCount(ctypes.byref(count)))
print("memory", runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(4096)))
END

sub identity {
    my $text = eval { run(natively(), 'python3', '-c', $runtime) };
    return 'libcudart.so is not there (--libraries)' if !defined $text;
    return { native => pairs($text), remote => with_workers({ a => '' }, sub { return pairs(run(by_worker('a'), 'python3', '-c', $runtime)) }) };
}

# Lines "NAME VALUE" of a program, natively and by a worker: those that differ.
sub differing {
    my (@command) = @_;
    my $lines = sub { return { map { /^(\S+) (.*)/ ? ($1 => $2) : () } split /\n/, run(@_) } };
    my $native = $lines->(natively(), @command);
    my $remote = with_workers({ a => '' }, sub { return $lines->(by_worker('a'), @command) });
    my @differ = grep { ($remote->{$_} // 'nothing') ne $native->{$_} } sort keys %$native;
    printf "    %-16s native %s, remote %s\n", $_, $native->{$_}, $remote->{$_} // 'nothing' for @differ;
    return { rows => scalar keys %$native, differ => scalar @differ, which => "@differ", native => $native };
}

sub results { return has_module('torch') ? differing('python3', 'tests/cuda/results.py') : 'torch is not installed' }

# Steps a second, natively and by a worker.
sub rates {
    my (@command) = @_;
    my $native = run(natively(), @command) + 0;
    my $remote = with_workers({ a => '' }, sub { return run(by_worker('a'), @command) + 0 });
    return { native => $native, remote => $remote, ratio => $remote / $native };
}

sub speed {
    return 'torch is not installed' if !has_module('torch');
    my $each = $opt{fake} ? 2 : 20;
    return { training => rates('python3', 'tests/cuda/train.py', $each), map { ($_ => rates('python3', 'tests/cuda/models.py', $_, $each)) } qw(train lora decode decode-graph) };
}

my %programs = (
    cupy => 'import cupy; print("sum", float(cupy.ones(1 << 20).sum()))',
    jax => 'import jax.numpy as j; print("sum", float(j.ones(1 << 20).sum()))',
    numba => "from numba import cuda\nimport numpy\n\@cuda.jit\ndef add(x):\n  x[cuda.grid(1)] += 1\nx = numpy.zeros(1024)\nadd[4, 256](x)\nprint('sum', x.sum())",
    triton => 'import triton; print("device", triton.runtime.driver.active.get_current_device())',
);

sub others {
    print "    $_ is not installed\n" for grep { !has_module($_) } sort keys %programs;
    return { map { my $name = $_; ($name => eval { differing('python3', '-c', $programs{$name}) } // "$@") } grep { has_module($_) } sort keys %programs };
}

sub share_and_limit {
    my $kind = $opt{fake} ? ['copy', 2] : ['2000000', 2];
    # Where copies are made by the processors, they are no measure.
    local $ENV{FAKE_CUDA_CONTENT} = 0;
    my $share = with_workers({ a => "weight=30\n", b => "weight=70\n" }, sub {
        return VGPU::OnCard::share(loads_of(map { [by_worker($_), 'loop', @$kind, $opt{seconds} * 2] } 'a', 'b'));
    });
    my $limit = $opt{fake} ? 1 << 30 : 8 << 30;
    my $memory = with_workers({ a => "vram=$limit\n" }, sub {
        my $job = load(by_worker('a'), 'hold', $limit >> 9, 100);
        my $got = readline $job->{out};
        my %seen = (got => $got / $limit, charged => charged('a') / $limit);
        my $from = time;
        end($job);
        sleep 0.002 while charged('a') && time < $from + 20;
        return { %seen, 'back-ms' => 1000 * (time - $from), left => charged('a') };
    });
    return { share => $share, %$memory };
}

# A program that keeps no rules beside one that computes: the second one notices nothing.
sub hostile {
    return with_workers({ a => '' }, sub {
        my $job = start(by_worker('a'), $client, 'goes-on');
        my $first = readline $job->{out};
        run(by_worker('a'), $client, 'hostile');
        kill TERM => $job->{pid};
        finish($job);
        return { 'neighbour-goes-on' => $first =~ /holding/ ? 1 : 0 };
    });
}

# The driver lets go of a worker's card, and gives it back.
sub suspend {
    my $bytes = $opt{fake} ? 1 << 28 : 4 << 30;
    return with_workers({ a => '' }, sub {
        my ($listeners) = @_;
        my $job = load(by_worker('a'), 'hold', $bytes, 100);
        sleep 0.1 until charged('a') >= $bytes;
        open my $file, '<', "/proc/$listeners->{a}{pid}/task/$listeners->{a}{pid}/children" or die "the listener: $!\n";
        my ($worker) = split ' ', readline $file;
        my %took = map { my $verb = $_; my $from = time; run({ LD_LIBRARY_PATH => $opt{driver} }, "$opt{door}/vgpu-suspend", $verb, $worker); ("$verb-seconds" => time - $from) } qw(suspend resume);
        my $lives = kill 0 => $job->{pid};
        end($job);
        return { %took, lives => $lives };
    });
}

# One rank; its collectives are copies.
my $nccl = <<'END';
import os, torch, torch.distributed as d
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577", RANK="0", WORLD_SIZE="1")
d.init_process_group("nccl")
x = torch.arange(1024, device="cuda", dtype=torch.float32)
d.all_reduce(x)
print("sum", float(x.sum()))
d.destroy_process_group()
END

sub nccl { return has_module('torch') ? differing('python3', '-c', $nccl) : 'torch is not installed' }

# Cases of the client that knows what it computes.
my @cases = qw(compute large graphs callbacks managed order local assert ipc shares nvml);
sub computes {
    return with_workers({ a => "vram=67108864\n" }, sub {
        return { map { my $case = $_; ($case => eval { run(by_worker('a'), $client, $case); 1 } // 0) } @cases };
    });
}

# Lines of kernels that print, natively and by a worker.
sub output {
    my $lines = sub { my $text = run(@_); return scalar(() = $text =~ /^hello$/mg) };
    my $native = $lines->(natively(), $client, 'printing');
    return { native => $native, remote => with_workers({ a => '' }, sub { return $lines->(by_worker('a'), $client, 'printing') }) };
}

# In their order, as those of on-card; its first step is before them.
sub steps {
    %opt = @_;
    return (
        [identity => \&identity, { 'remote.count' => [0, 0], 'remote.memory' => [0, 0] }],
        [computes => \&computes, { map { ($_ => [1, 1]) } @cases }],
        [output => \&output, { native => [3001, 3001], remote => [3001, 3001] }],
        [micro => \&micro, \%micro_goals],
        [results => \&results, { differ => [0, 0] }],
        [speed => \&speed, { 'training.ratio' => [0.97, undef], 'train.ratio' => [0.97, undef], 'lora.ratio' => [0.95, undef], 'decode.ratio' => [0.95, undef], 'decode-graph.ratio' => [0.97, undef] }],
        [others => \&others, { map { ("$_.differ" => [0, 0]) } grep { has_module($_) } sort keys %programs }],
        [tenants => \&share_and_limit, { share => [29, 31], got => [0.9, 1], charged => [0.95, 1], 'back-ms' => [undef, 200], left => [0, 0] }],
        [hostile => \&hostile, { 'neighbour-goes-on' => [1, 1] }],
        [nccl => \&nccl, { differ => [0, 0] }],
        [suspend => \&suspend, { 'suspend-seconds' => [undef, 10], 'resume-seconds' => [undef, 10], lives => [1, 1] }],
    );
}

1;
