#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What the door's two libraries are as files: what they need and export, and what they must not have.
use strict;
use warnings;

use Test::More;

my $out = 'build/governor/cuda';

sub slurp { my ($file) = @_; local $/ = undef; open my $in, '<', $file or BAIL_OUT("$file: $!"); return <$in> }

sub table {
    my ($file, $kinds) = @_;
    return [sort map { /^E\((\w+), \w+, \d+, \w+, ($kinds),/ ? $1 : () } split /\n/, slurp($file)];
}

my %tables = ('libcuda.so.1' => 'governor/cuda/entry_points.def', 'libnvidia-ml.so.1' => 'governor/cuda/nvml/nvml_entry_points.def');
for my $name (sort keys %tables) {
    my $library = "$out/$name";
    my $dynamic = `readelf -Wd $library`;
    like($dynamic, qr/\(SONAME\).*\[\Q$name\E\]/, "$name: the driver's name");
    like($dynamic, qr{\(NEEDED\).*\[/usr/lib/mdev-vgpu/real/\Q$name\E\]}, "$name: needs the driver by its path");
    like($dynamic, qr/\(NEEDED\).*\[libvgpu-member\.so\.1\]/, "$name: has the member library in common with other doors");
    like($dynamic, qr/\(SYMBOLIC\)/, "$name: its own calls are its own");
    like($dynamic, qr/NODELETE/, "$name: is never unloaded");
    like($dynamic, qr/BIND_NOW|NOW/, "$name: bound at once");

    # The one is the compiler's own.
    like($dynamic, qr/\(INIT_ARRAYSZ\)\s+8 /, "$name: nothing of ours runs when it is loaded");
    my @exported = sort map { (split)[2] } split /\n/, `nm -D --defined-only $library`;
    is_deeply(\@exported, table($tables{$name}, 'wrap|move|close|pass|used'), "$name: exports the table, and nothing else");
    my @used = map { (split)[-1] } split /\n/, `nm -D --undefined-only $library`;
    is_deeply([grep { /^(?:v?[fd]?printf|f?puts|putchar|perror|stderr|stdout|syslog|abort|exit)\b/ } @used], [], "$name: has no means to print, or to end a program");
    is_deeply([grep { /^(?:signal|sigaction|setenv|putenv)\b/ } @used], [], "$name: leaves signals and the environment alone");
}

my @names = map { /^(\w+)/ ? $1 : () } map { split /\n/, slurp("tests/cuda/names/$_.txt") } qw(cudarc hipify nvcuda);
my %known = map { $_ => 1 } @{ table('governor/cuda/entry_points.def', '\w+') };
is_deeply([grep { !$known{$_} } @names], [], scalar(@names) . ' names of CUDA are classified');

# A name that isn't ends the build.
open my $file, '>', "$out/a-name.txt" or BAIL_OUT($!);
print {$file} "cuMemAlloc_v2 11.4\ncuMemAlloc_v77 13.9\n";
close $file;
my $said = `$out/gen-stubs governor/cuda/entry_points.def governor/cuda/argument_types.def --names $out/a-name.txt 2>&1`;
isnt($?, 0, 'a name that is not classified ends the build');
like($said, qr/cuMemAlloc_v77/, 'the name that ends the build is printed');

# And so does one of which it is not said what it does while memory is displaced.
my $away = slurp('governor/cuda/away.def');
for my $case ([qr/^A\(COPY,.*\n/m, '', qr/lacks the class COPY/], [qr/\z/, "X(cuMemAlloc_v77, own)\n", qr/has cuMemAlloc_v77, which the table lacks/],
    [qr/\z/, "X(cuLaunchKernel, waits)\n", qr/cuLaunchKernel is as its class/], [qr/\z/, "X(cuVDPAUGetDevice, waits)\n", qr/its arguments are not known/]) {
    my ($from, $to, $says) = @$case;
    (my $other = $away) =~ s/$from/$to/;
    open my $out_file, '>', "$out/away.def" or BAIL_OUT($!);
    print {$out_file} $other;
    close $out_file;
    my $said_of = `$out/gen-fronts governor/cuda/entry_points.def governor/cuda/argument_types.def $out/away.def 2>&1`;
    isnt($?, 0, "away.def: $says: it ends the build");
    like($said_of, $says, 'and says why');
}

# A build in a container: -lcuda finds a toolkit's stub, which the hook covers by ours.
open $file, '>', "$out/program.c" or BAIL_OUT($!);
print {$file} "int cuInit(unsigned int); int cuGetErrorName(int, const char **); int main(void) { return cuInit(0) + cuGetErrorName(0, 0); }\n";
close $file;
for my $library ('build/cuda-test/plain/libcuda.so.1', 'build/cuda-remote/libcuda.so.1') {
    is(system("cc -Wl,--no-allow-shlib-undefined -o $out/program $out/program.c $library"), 0, "$library: a program is linked with it");
    like(`readelf -Wd $out/program`, qr/\(NEEDED\).*\[libcuda\.so\.1\]/, "$library: and needs libcuda.so.1 then");
}

# Stubs for the other processor are at least assembled.
is(system("clang --target=aarch64-linux-gnu -c -o $out/stubs-arm64.o $out/cuda/stubs.S"), 0, 'arm64: the stubs are assembled');

done_testing();
