#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The door for containers, vgpu-guard@, on the host itself: whoever can reach its socket computes without a device
# node, and nobody else; hostile clients of it, its confinement, its end. 57-containers-guarded.t tests vgpud's part.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Sandbox;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $uuid = 'c0ffee00-0000-4000-8000-000000000077';
my $unit = "vgpu-guard\@$uuid.service";
my $dir = "/run/vgpu/guard/$uuid";
my $socket = "$dir/vtest.sock";
my $nobody = 65534;

sub host { return VGPU::Lab::host(@_) }

# vgpud's steps to start one, with a directory that a user can enter.
sub start_guard {
    return host(<<"SH", timeout => 120);
set -e
/usr/lib/mdev-vgpu/vgpu-engine-user add $uuid guard
mkdir -p $dir
chmod 700 $dir
chown $nobody $dir
printf '[slice]\\ngpu=%s\\n' $gpu >/run/vgpu/guard/$uuid.conf
chmod 644 /run/vgpu/guard/$uuid.conf
systemctl start $unit
systemctl is-active $unit
SH
}

sub stop_guard {
    return host(<<"SH", timeout => 60);
set -e
systemctl stop $unit
timeout 20 sh -c 'while systemctl -q is-active vgpu-guard\@$uuid.socket; do sleep 0.2; done'
/usr/lib/mdev-vgpu/vgpu-engine-user remove $uuid guard
rm -rf /run/vgpu/guard/$uuid.conf $dir
SH
}

# A program without any device node, as $user, started.
sub client {
    my ($user, $command) = @_;
    return VGPU::Lab::host_job("systemd-run -q --pipe --wait -p User=$user -p PrivateDevices=yes -E VN_DEBUG=vtest "
        . "-E VTEST_SOCKET_NAME=$socket -E VK_DRIVER_FILES=/usr/share/vulkan/icd.d/virtio_icd.json $command 2>&1; "
        # For a program that a signal ended systemd-run exits with 255, which is ssh's status for a broken connection.
        . 'status=$?; [ $status != 255 ] || status=134; exit $status');
}

sub computes_there {
    my ($user) = @_;
    my $job = client($user, '/usr/local/bin/guard-vk-compute --size 65536');
    $job->wait(120);
    return VGPU::Compute::verdict($job->output);
}

# The guard itself, its keeper, and a session that waits for the next client with its render server.
my $always = 4;

# Processes of the unit except these, once there are $wanted.
sub sessions {
    my ($wanted) = @_;
    my @all;
    for (1 .. 100) {
        @all = keys %{ VGPU::Sandbox::processes($unit) };
        return scalar(@all) - $always if $wanted->(scalar(@all) - $always);
        sleep 0.2;
    }
    die scalar(@all) . " processes\n";
}

point('the programs are in place', sub {
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/guest/vk-compute', '/usr/local/bin/guard-vk-compute')]);
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/guard/t-hostile', '/usr/local/bin/guard-t-hostile')]);
    return;
});
point('without a user of its own it does not start', sub {
    host("mkdir -p /run/vgpu/guard; touch /run/vgpu/guard/$uuid.conf; systemctl start $unit", fail => 1);
    die "it started\n" if $VGPU::Command::status == 0;
    host("rm /run/vgpu/guard/$uuid.conf; systemctl reset-failed $unit vgpu-guard\@$uuid.socket", fail => 1);
    return;
});
point('a guard starts, and systemd has its socket', sub {
    start_guard();
    return host("stat -c '%A %U %n' $dir $socket");
});
point('who gets through the directory computes, without a device node', sub { computes_there($nobody) });
point('so does root', sub { computes_there('root') });
point('another user is refused', sub {
    my $job = client('daemon', '/usr/local/bin/guard-vk-compute --size 65536');
    $job->wait(60, fail => 1);
    die $job->output if $job->output =~ /^OK/m;
    return $job->output;
});
point('they have left nothing behind', sub { sessions(sub { $_[0] == 0 }) });

my $witness = client($nobody, '/usr/local/bin/guard-vk-compute --size 65536 --forever --pause 200');
$witness->expect(qr/^OK round 1:/m, 120);
eval { sessions(sub { $_[0] == 3 }) };
my $all = VGPU::Sandbox::processes($unit);
point('there are the guard, its keeper, a session and one for the next client, their render servers, and a worker', sub {
    my @commands = map { $_->{command} } values %$all;
    die "@commands\n" if @commands != 7 || 3 != grep { /virgl_render_server/ } @commands;
    return join "\n", @commands;
});
VGPU::Sandbox::confined('all processes', $all);
point('its user is no engine\'s', sub {
    my ($own) = map { $_->{Uid} } values %$all;
    my %engine = %{ VGPU::Sandbox::processes($red->{vgpu}{unit}) };
    die "$own\n" if grep { $_->{Uid} eq $own } values %engine;
    return $own;
});
point('systemd grades its exposure as OK', sub { VGPU::Sandbox::graded($unit) });
point('hostile clients', sub {
    my $job = client($nobody, '-p LimitNOFILE=65536 /usr/local/bin/guard-t-hostile');
    $job->wait(600);
    return join "\n", $job->output =~ /^((?:not )?ok .*)$/mg;
});
point('another client has computed all the time, and was right', sub { keeps_computing($witness, 2) });

point('the guard is killed: its client fails, the next one computes by the same socket', sub {
    my $inode = host("stat -c %i $socket");
    host("kill -9 \$(systemctl show -P MainPID $unit)");
    $witness->wait(60, fail => 1);
    my $seen = VGPU::Compute::must_have_failed($witness);
    my $next = computes_there($nobody);
    die "another socket\n" if host("stat -c %i $socket") ne $inode;
    return "$seen\n$next";
});
point('it is stopped: the socket goes with it', sub {
    stop_guard();
    host("test -e $socket", fail => 1);
    die "it is there\n" if $VGPU::Command::status == 0;
    return;
});

# The program in the guard's place, and in the place of the render server that is kept for the next client. When it has
# ended, the guard starts another one.
sub inside {
    my ($change) = @_;
    return VGPU::Sandbox::inside($unit, $change, \&start_guard, \&stop_guard);
}

my $ready = point('the probe is in place', sub { VGPU::Sandbox::prepare($red, $blue, $uuid) });
VGPU::Sandbox::report('in the guard\'s place', inside("ExecStart=\nExecStart=$VGPU::Sandbox::probe --guard $gpu"))
    if $ready;
VGPU::Sandbox::report('as a render worker',
    inside("BindReadOnlyPaths=$VGPU::Sandbox::probe:$VGPU::Sandbox::server")) if $ready;

point('the VMs have noticed nothing', sub {
    return join "\n", map { computes($_) } $red, $blue;
});
point('the kernel of the host has nothing to complain about', sub {
    my $complaints = VGPU::Lab::kernel_complaints();
    die $complaints if $complaints =~ /\S/;
});

done_testing();
