#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Programs that have none of the guarded door's variables, as those of "docker exec" and of health checks: the layer that
# a container has by a mount lets Mesa's client find the real vgpu-guard. `make check-guard`, part of `make unit`.
use strict;
use warnings;
use Cwd;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use Test::More;

# Where the layer under test looks for sockets.
my $sockets = getcwd() . '/build/guard/vtest';
my $layers = getcwd() . '/build/guard/layer';

sub without_variables {
    my ($name, %env) = @_;
    (my $manifest, my @command) = GuardLive::client_command('build/guest/vk-compute', '--rounds=1', split ' ', $small);
    delete local @ENV{qw(VN_DEBUG VTEST_SOCKET_NAME)};
    return start($name, { VK_DRIVER_FILES => $manifest, VK_IMPLICIT_LAYER_PATH => $layers, %env }, @command);
}

sub link_socket {
    my ($name, $target) = @_;
    unlink "$sockets/$name";
    symlink $target, "$sockets/$name" or die "$sockets/$name: $!\n";
    return;
}

mkdir $sockets;
unlink glob "$sockets/*";
my $guard = start_guard();

my $job = without_variables('none');
isnt(finish($job, 60), 0, 'without a socket there is no slice, and no device of Venus') or diag(output($job));
unlike(output($job), qr/VK_LAYER|layer/i, 'and the layer says nothing about it');

link_socket('safe.sock', $socket);
$job = without_variables('found');
is(finish($job, 100), 0, 'a program without variables computes by the slice that is mounted') or diag(output($job));
like(output($job), qr/1 rounds .* verified on Virtio-GPU Venus/, 'a program without variables computes by Venus');

link_socket('a.sock', $socket);
link_socket('safe.sock', "$dir/nobody.sock");
is(finish(without_variables('first'), 100), 0, 'of several slices it is the first by name');

$job = without_variables('chosen', VTEST_SOCKET_NAME => "$dir/nobody.sock");
isnt(finish($job, 60), 0, 'a socket that was chosen by the variable is the one');
$job = without_variables('own', VN_DEBUG => '');
isnt(finish($job, 60), 0, 'and a program that wants no guard gets none');
$job = without_variables('off', VGPU_GUARDED_DISABLE => 1);
isnt(finish($job, 60), 0, 'without the layer it has none either');

unlink glob "$sockets/*";
kill 'TERM', $guard->{pid};
finish($guard, 10);

done_testing();
