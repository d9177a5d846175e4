#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# The module builds on every kernel that is supported, without a warning at W=1 and from sparse.
# Runs on the outer machine; builds in the rig's tree.
use strict;
use warnings;
use Test::More;

# Debian's sparse (0.6.4) can't read the headers of 7.2, which use __typeof_unqual__.
my %sparse = ('6.1' => 1, '6.12' => 1, '7.2' => 0);

for my $kernel (sort keys %sparse) {
    my $flags = $sparse{$kernel} ? 'W=1 C=2' : 'W=1';
    my $script = 'KVER=$(ls /lib/modules); rm -rf build/module-$KVER; '
        . "make --no-print-directory module KVER=\$KVER MODULE_FLAGS=\"$flags\"";
    my $log = `tests/rig/rig build --kernel $kernel -- sh -c '$script' 2>&1`;
    is($?, 0, "$kernel: builds") or diag($log);
    my @warnings = grep { /\bwarning:|\berror:|WARNING/ } split /\n/, $log;
    is(scalar @warnings, 0, "$kernel: no warning ($flags)") or diag(join("\n", @warnings));
    like($log, qr/CHECK/, "$kernel: sparse has run") if $sparse{$kernel};
}
done_testing();
