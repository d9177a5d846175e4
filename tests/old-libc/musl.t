#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A program whose C library is musl loads the Vulkan layer, the one that was built with glibc, and is a member of its
# slice. Debian has no Vulkan loader and no driver for musl, so the program plays both. Another one uses CUDA by a worker,
# as in a container of Alpine's with a guarded slice; the worker has the fake driver.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use OldLibc;
use Test::More;

my $program = "$build/old-libc/t-layer";
system('mkdir', '-p', "$build/old-libc") == 0 or die;
# Of glibc's folder only Vulkan's headers.
system("ln -sfn /usr/include/vulkan /usr/include/vk_video $build/old-libc/") == 0 or die;
is(system("musl-gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -I$build/old-libc -Igovernor/member -Igovernor/protocol "
        . "-o $program tests/old-libc/t-layer.c"), 0, 'a program for musl is built');
like(`readelf -l $program`, qr/ld-musl/, 'the program is linked with musl');

start_slice();
my ($text, $status) = in_slice(undef, $program, $layer);
is($status, 0, 'it loads the layer and uses its slice, and so does its child') or diag($text);
($text, $status) = in_slice('/nowhere', $program, $layer);
is($status, 3, 'without an arbiter it has no instance') or diag($text);
like($text, qr/cannot join the slice at \/nowhere: No such file/, 'and is told why');

$program = "$build/old-libc/t-remote";
is(system("musl-gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -o $program tests/old-libc/t-remote.c"), 0, 'a program of CUDA for musl is built');
my $socket = start_worker();
($text, $status) = with_worker($socket, $program, $remote);
is("$status $text", "0 right\n", 'it loads our libcuda and computes, and its threads do');
($text, $status) = with_worker('/nowhere', $program, $remote);
is($status, 1, 'without a worker it has no GPU');
like($text, qr{no GPU for this program: /nowhere: No such file}, 'and is told why');

done_testing();
