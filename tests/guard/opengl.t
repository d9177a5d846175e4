#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# OpenGL of a container with the guarded door: Mesa's zink makes Vulkan of it, which goes through the socket. Run by
# tests/guard/opengl-check, in a tree with opengl.txt.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use Test::More;
use Time::HiRes 'sleep';

my $guard = start_guard();
my %zink = (GALLIUM_DRIVER => 'zink');
# zink uses a processor only if it is told that software will do.
my %software = (LIBGL_ALWAYS_SOFTWARE => 1);
my $venus = qr/zink Vulkan [\d.]+\(Virtio-GPU Venus/;

my $job = client('egl', { %zink, %software }, qw(eglinfo -B -p surfaceless));
is(finish($job, 60), 0, 'EGL without a display');
like(output($job), qr/^OpenGL core profile renderer: $venus/m, 'OpenGL is zink on Venus');
like(output($job), qr/^OpenGL core profile version: 4\.6 /m, 'version 4.6');
like(output($job), qr/^OpenGL ES profile version: OpenGL ES 3\.2 /m, 'and OpenGL ES 3.2');

$job = client('mark', { %zink, %software }, qw(xvfb-run -a glmark2 --off-screen --validate));
is(finish($job, 400), 0, 'glmark2 on an X server');
like(output($job), qr/GL_RENDERER: +$venus/, 'draws by zink on Venus');
my %found;
$found{$_}++ for output($job) =~ /: Validation: (\w+)/g;
cmp_ok($found{Success} // 0, '>=', 20, 'its pictures are right');
is($found{Failure} // 0, 0, 'and none is wrong') or diag(output($job));
note("$_: $found{$_}") for sort keys %found;

$job = client('refused', \%zink, qw(eglinfo -B -p surfaceless));
finish($job, 60);
like(output($job), qr/ZINK: failed to choose pdev/, 'without that variable zink refuses a GPU that is a processor');

kill 'TERM', $guard->{pid};
finish($guard, 10);
done_testing();
