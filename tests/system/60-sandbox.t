#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The engines' confinement, checked from outside while guests compute: main process, render server
# and workers, all of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Sandbox;
use VGPU::Test;

my @tenants = baseline();
my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever') } @tenants;
$_->expect(qr/^OK round 1:/m, 120) for @jobs;

my @engines = map { VGPU::Sandbox::processes($_->{vgpu}{unit}) } @tenants;

for my $i (0, 1) {
    my $vgpu = $tenants[$i]{vgpu};
    my $all = $engines[$i];
    point("$vgpu->{type}: there are the engine, the render server, and a worker", sub {
        my @commands = map { $_->{command} } values %$all;
        die "@commands\n" if @commands < 3 || !grep({ /virgl_render_server/ } @commands);
        return join "\n", @commands;
    });
    VGPU::Sandbox::confined("$vgpu->{type}: all processes", $all);
}

point('the two engines are two users', sub {
    my @users = map { my $all = $_; join ',', sort keys %{ { map { $_->{Uid} => 1 } values %$all } } } @engines;
    die "both are $users[0]\n" if $users[0] eq $users[1];
    return "@users";
});

point('an engine has no other vGPU, disk or network open', sub {
    my $pid = $tenants[0]{vgpu}->engine_pid;
    my $open = VGPU::Lab::host("ls -l /proc/$pid/fd | sed -n 's/.* -> //p' | sort | uniq -c");
    die $open if $open =~ m{$tenants[1]{vgpu}{uuid}|/dev/(?!vgpu/$tenants[0]{vgpu}{uuid}|dri/|null|udmabuf)};
    my $net = VGPU::Lab::host("nsenter -t $pid -n ip -o link | grep -v ' lo:' || true");
    die "network: $net" if $net =~ /\S/;
    return $open;
});

point('systemd grades its exposure as OK', sub {
    return VGPU::Sandbox::graded($tenants[0]{vgpu}{unit});
});

point('meanwhile both computed, and were right', sub {
    return join '; ', map { VGPU::Compute::stop_right($tenants[$_], $jobs[$_]) } 0, 1;
});

done_testing();
