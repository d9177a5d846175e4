#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# The module builds on every kernel that is supported, without a warning at W=1 and from sparse.
# Runs on the outer machine; builds in the rig's tree.
use strict;
use warnings;
use Test::More;

my @kernels = qw(6.1 6.12 7.2);

for my $kernel (@kernels) {
    my $script = 'rm -rf build/module-* && make --no-print-directory module '
        . 'KVER=$(ls /lib/modules) MODULE_FLAGS="W=1 C=2"';
    my $log = `tests/rig/rig build --kernel $kernel -- sh -c '$script' 2>&1`;
    is($?, 0, "$kernel: builds") or diag($log);
    my @warnings = grep { /\bwarning:|\berror:|WARNING/ } split /\n/, $log;
    is(scalar @warnings, 0, "$kernel: no warning at W=1, none from sparse")
        or diag(join("\n", @warnings));
    like($log, qr/CHECK/, "$kernel: sparse has run");
}
done_testing();
