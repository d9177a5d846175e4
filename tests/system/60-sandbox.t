#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The engines' confinement, looked at from outside while guests compute: main process, render server
# and workers, all of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my @tenants = baseline();
my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever') } @tenants;
$_->expect(qr/^OK round 1:/m, 120) for @jobs;

# pid => { Uid, CapEff, ... } of every process of an engine's unit.
sub processes {
    my ($vgpu) = @_;
    my $text = VGPU::Lab::host(<<"SH");
group=/sys/fs/cgroup\$(systemctl show -P ControlGroup $vgpu->{unit})
for pid in \$(find \$group -name cgroup.procs -exec cat {} +); do
    echo "pid \$pid \$(tr '\\0' ' ' </proc/\$pid/cmdline)"
    grep -E '^(Uid|Gid|Cap[A-Z][a-z]+|NoNewPrivs|Seccomp|NSpid):' /proc/\$pid/status
done
SH
    my (%all, $pid);
    for (split /\n/, $text) {
        if (/^pid (\d+) (.*)/) { $pid = $1; $all{$pid}{command} = $2 }
        elsif (/^(\w+):\s*(.*?)\s*$/) { $all{$pid}{$1} = $2 }
    }
    return \%all;
}

my @engines = map { processes($_->{vgpu}) } @tenants;

for my $i (0, 1) {
    my $vgpu = $tenants[$i]{vgpu};
    my $all = $engines[$i];
    point("$vgpu->{type}: there are the engine, the render server, and a worker", sub {
        my @commands = map { $_->{command} } values %$all;
        die "@commands\n" if @commands < 3 || !grep({ /virgl_render_server/ } @commands);
        return join "\n", @commands;
    });
    my %wanted = (
        'no capability in any set' => sub { !grep { $_[0]{$_} =~ /[1-9a-f]/ }
                qw(CapEff CapPrm CapInh CapBnd CapAmb) },
        'NoNewPrivs' => sub { $_[0]{NoNewPrivs} == 1 },
        'a seccomp filter' => sub { $_[0]{Seccomp} == 2 },
        'not root' => sub { !grep { $_ == 0 } split ' ', "$_[0]{Uid} $_[0]{Gid}" },
    );
    for my $what (sort keys %wanted) {
        point("$vgpu->{type}: all processes: $what", sub {
            my @bad = grep { !$wanted{$what}->($all->{$_}) } sort keys %$all;
            die map({ join(' ', $_, %{ $all->{$_} }) . "\n" } @bad) if @bad;
            return scalar(keys %$all) . ' processes';
        });
    }
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
    my $text = VGPU::Lab::host("systemd-analyze security --no-pager $tenants[0]{vgpu}{unit} | tail -n 1");
    my ($level) = $text =~ /: ([0-9.]+)/;
    die $text if !defined $level || $level > 3;
    return $text;
});

$_->run('pkill -x vk-compute', fail => 1) for @tenants;
$_->wait(60, fail => 1) for @jobs;
point('meanwhile both computed, and were right', sub {
    my @bad = grep { $_->output =~ /FAIL/ } @jobs;
    die map({ $_->output } @bad) if @bad;
    return;
});

done_testing();
