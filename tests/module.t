#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# The module builds on each kernel that is named (prove tests/module.t :: 6.1 6.12; by default 6.12), without a warning
# at W=1 and from sparse. Runs on the outer machine; builds in the rig's tree.
use strict;
use warnings;
use Test::More;

my @kernels = @ARGV ? @ARGV : '6.12';

# rig_build KERNEL SCRIPT: its output; $? is its status. The script has the kernel's version in $KVER.
sub rig_build {
    my ($kernel, $script) = @_;
    my $quoted = "KVER=\$(ls /lib/modules); $script" =~ s/'/'\\''/gr;
    return scalar `tests/rig/rig build --kernel $kernel -- sh -c '$quoted' 2>&1`;
}

# What sparse can't read: Linux uses __typeof_unqual__ from 6.15 on, Debian 13's sparse (0.6.4) does not know it. Asked of sparse
# itself, so that a newer one is used as soon as it is there.
sub sparse_reads {
    my ($kernel) = @_;
    my $headers = rig_build($kernel, 'grep -rlw __typeof_unqual__ /lib/modules/$KVER/source/include /lib/modules/$KVER/build/include '
        . '/usr/src/linux-headers-*/include/linux/compiler_types.h 2>/dev/null | head -1');
    return 1 if $headers eq '';
    rig_build($kernel, 'echo "int a; extern __typeof_unqual__(a) b;" >/tmp/typeof.c; sparse /tmp/typeof.c 2>&1 | grep -q error');
    return $? != 0;
}

for my $kernel (@kernels) {
    my $version = rig_build($kernel, 'echo $KVER');
    is($?, 0, "$kernel: the rig has it") or diag($version);
    chomp $version;
    note("$kernel is $version");
    my $sparse = sparse_reads($kernel);
    my $flags = $sparse ? 'W=1 C=2' : 'W=1';
    # What make takes for built is not compiled, so it would not warn.
    my $log = rig_build($kernel,
        "rm -rf build/module-\$KVER; make --no-print-directory module KVER=\$KVER MODULE_FLAGS='$flags'");
    is($?, 0, "$kernel ($version): builds") or diag($log);
    my @warnings = grep { /\bwarning:|\berror:|WARNING/ } split /\n/, $log;
    is(scalar @warnings, 0, "$kernel ($version): no warning ($flags)") or diag(join("\n", @warnings));
SKIP: {
        skip "sparse can't read the headers of $version (__typeof_unqual__)", 1 if !$sparse;
        like($log, qr/CHECK/, "$kernel ($version): sparse has run");
    }
}
my $other = rig_build($kernels[0], 'touch mdev-driver/Kbuild; make --no-print-directory module KVER=$KVER MODULE_FLAGS=CONFIG_X86_64=');
isnt($?, 0, 'another architecture is refused');
like($other, qr/mdev_vgpu is for x86-64 only/, '... with a sentence') or diag($other);
done_testing();
