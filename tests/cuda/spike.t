#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/cuda/spike asks a driver seven questions; here the fake driver plays each answer.
use strict;
use warnings;

use Cwd qw(getcwd);
use Test::More;

my $out = getcwd() . '/build/cuda-test';
my $stand_ins = "$out/stand-ins";

# What it says of this question, in the environment %$env.
sub verdict_of {
    my ($name, $env, @options) = @_;
    local %ENV = (PATH => $ENV{PATH}, FAKE_CUDA_CONTENT => 1, LD_LIBRARY_PATH => "$out/real", %$env);
    my $line = `$out/spike --driver $out/real @options $name`;
    is($?, 0, "$name: it ends well, whatever it has seen");
    like($line, qr/\A\d $name: [^\n]*\n\z/, "$name: one line");
    return $line =~ /: (?:.*): ((?:yes|no|not asked), .*)/ ? $1 : $line;
}

my $integrity = sub { my ($way, @options) = @_; return verdict_of('integrity', { FAKE_CUDA_INTEGRITY => $way }, @options) };
like($integrity->(0), qr/^not asked, .*no such table/, 'integrity: a driver without the table');
like($integrity->(1), qr/^yes, with getpid\(\) and pthread_self\(\)/, 'integrity: what asks the C library is told the program\'s pid and thread');
# Where no namespace of pids can be made, it says so.
my $namespaces = !system('unshare -p -f true 2>/dev/null');
like($integrity->(2), $namespaces ? qr/^yes, .*namespace of pids/ : qr/^no, .*could not be tried/, 'integrity: what asks the kernel gets a process with that pid');
like($integrity->(3), qr/^no, /, 'integrity: what no other process can have');

for my $way (1 .. 3) {
    my $is = $integrity->($way);
    is($integrity->($way, '--forks'), $is, "integrity: the same of two processes that are forked: $way");
}

like(verdict_of('painting', {}), qr/^yes, .*, 0 elsewhere/, 'painting: it lies where there is room');
like(verdict_of('painting', { FAKE_CUDA_PLACE => 1 }), qr/^no, cuInit: error 2/, 'painting: it insists on a place of its own');
like(verdict_of('painting', { FAKE_CUDA_CONTENT => 0 }), qr/^not asked, /, 'painting: a driver that never computes');

my @libraries = ('--libraries', $stand_ins);
like(verdict_of('tables', {}, @libraries), qr/^yes, libcufft\.so\.12: result 0; no cuBLAS: result 0; 6e163fbe\[7\] x1 \(0, 0, 0, 4711, .*; 21318c60\[4\] x1 \(1, address, 3, 4, /,
    'tables: slots that are known, with their arguments');
like(verdict_of('tables', { STAND_IN_UNKNOWN => 1 }, @libraries), qr/^no, .*unknown slot 21318c60\[5\] x1 \(1, address/, 'tables: one that is not');
like(verdict_of('tables', {}, '--libraries', '/nonexistent'), qr/^not asked, /, 'tables: no library');
like(verdict_of('runtimes', {}, @libraries), qr/^yes, libcudart\.so\.13: result 0$/, 'runtimes: a table that is known');
like(verdict_of('runtimes', { STAND_IN_UNKNOWN => 1 }, @libraries), qr/^no, .*unknown table 13370{28}/, 'runtimes: one that is not');
like(verdict_of('runtimes', {}, '--libraries', '/nonexistent'), qr/^not asked, /, 'runtimes: no runtime');

like(verdict_of('pinned', {}), qr/^yes, /, 'pinned: one address');
like(verdict_of('pinned', { FAKE_CUDA_HOST_OFFSET => 65536 }), qr/^no, the GPU has it at 0x300000010000, /, 'pinned: another one');

like(verdict_of('host-memory', {}), qr/^yes, attribute 88 is 0 natively/, 'host-memory: a GPU that never reaches it');
like(verdict_of('host-memory', { FAKE_CUDA_HOST_MEMORY => 1 }), qr/^yes, attribute 88 is 1 natively and 0 with the flag, which 1 /, 'host-memory: one that does as it is asked');
like(verdict_of('host-memory', { FAKE_CUDA_HOST_MEMORY => 2 }), qr/^no, .*uvm_disable_hmm=1/, 'host-memory: one that does not');

# The fake card is no file here, which the sandbox would not let it write. A kernel without Landlock has no sandbox to ask in.
my $landlock = syscall(444, 0, 0, 1) > 0; # landlock_create_ruleset(): the version
like(verdict_of('confined', {}), $landlock ? qr/^yes, .*no system call was refused/ : qr/^not asked, /, 'confined: a driver that needs no more');
like(verdict_of('confined', { FAKE_CUDA_COMPILER => 1 }), $landlock ? qr/^no, PTX: error 221/ : qr/^not asked, /, 'confined: one that starts another program');

# Whatever the driver does, its question has an end and a verdict.
like(verdict_of('pinned', { FAKE_CUDA_HANGS => 1 }, '--seconds', 1), qr/^no, nothing was said for 1 s while cuInit\(\) runs/, 'a driver that hangs');
like(verdict_of('pinned', { FAKE_CUDA_HANGS => 2 }), qr/^no, it ended by signal 11 while cuInit\(\) runs/, 'a driver that crashes');
my $lines = () = `$out/spike --driver /nonexistent` =~ /: not asked, /g;
is($lines, 7, 'without a driver nothing can be asked');
done_testing;
