#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpuctl run on a host with systemd and polkit: the program's scope, by which its slice lasts as long as its children; and
# users who are not root. What needs neither is in tests/run/live.t.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Slice;
use VGPU::Test;

baseline();
my $slice = qr/^[0-9a-f]{8}-[0-9a-f-]{27} /m;

sub host { return VGPU::Lab::host(@_) }
# Without those of the rig's VMs.
sub slices { return host('vgpuctl slice list | grep -v " vm "') }
sub given_back { return VGPU::Slice::soon(sub { slices() !~ $slice }, 'the slice is there still') }
sub as { my ($user, $command) = @_; return "setpriv --reuid $user --regid $user --init-groups env HOME=/tmp $command" }

# vgpuctl run as a user, with what it printed and its exit status.
sub run_as {
    my ($user, $command) = @_;
    my $said = host(as($user, "vgpuctl run $command") . ' 2>&1', fail => 1, timeout => 120);
    return ($said, $VGPU::Command::status);
}

point('a program of root\'s is in a scope of the system\'s manager, and its slice goes with it', sub {
    my $said = host('vgpuctl run --vram 16M -- cat /proc/self/cgroup', timeout => 120);
    my ($uuid) = $said =~ m{/vgpu-run-([0-9a-f-]{36})\.scope$}m or die "no scope:\n$said";
    given_back();
    die "the scope is there still\n" if host('systemctl list-units --no-legend "vgpu-run-*"') =~ /$uuid/;
    return $said;
});

point('a child that goes on keeps it, over a restart of vgpud, too', sub {
    host('vgpuctl run --vram 16M -- sh -c "sleep 1000 >/dev/null 2>&1 &"', timeout => 120);
    my $before = slices();
    host('systemctl restart vgpud', timeout => 120);
    my $after = slices();
    die "it is gone:\n$before$after" if $before !~ $slice || $after !~ $slice;
    host('systemctl stop "vgpu-run-*.scope"', timeout => 120);
    given_back();
    return $before;
});

point('a user of a tenant runs a program, in its quota', sub {
    host('useradd rita; useradd theo; vgpuctl tenant set run --user rita --vram 32M');
    my ($said, $status) = run_as('rita', '--vram 16M --tenant run -- id -un');
    die "status $status: $said" if $status || $said !~ /^rita$/m;
    ($said, $status) = run_as('rita', '--vram 64M --tenant run -- true');
    die "over the quota, status $status: $said" if $status != 7;
    ($said, $status) = run_as('rita', '--vram 16M -- true');
    die "as nobody's, status $status: $said" if $status != 5;
    given_back();
    return $said;
});

# A rule of the operator's: those of the user $user get $answer, unless a file before it has another answer.
sub set_rule {
    my ($file, $who, $answer) = @_;
    host("cat >/etc/polkit-1/rules.d/$file; systemctl restart polkit", stdin => <<"JS");
polkit.addRule(function(action, subject) {
    if (action.id == "org.mdev_vgpu.host.administer" && $who)
        return polkit.Result.$answer;
});
JS
    return;
}

point('who is of no tenant runs one where polkit lets him, and not where a file before says no', sub {
    my ($said, $status) = run_as('theo', '--vram 16M -- true');
    die "without a rule, status $status: $said" if $status != 5;
    set_rule('50-theo.rules', 'subject.user == "theo"', 'YES');
    my $socket = '--vram 16M -- sh -c "ls \$VGPU_GOVERNOR_SLICES/*/0/governor.sock"';
    VGPU::Slice::soon(sub { ($said, $status) = run_as('theo', $socket); return $status == 0 }, 'he is refused');
    die "he can't reach the arbiter's socket: $said" if $said !~ /governor\.sock/;
    host('groupadd wheel; usermod -aG wheel theo');
    set_rule('10-wheel.rules', 'subject.isInGroup("wheel") && !subject.local', 'NO');
    VGPU::Slice::soon(sub { ($said, $status) = run_as('theo', '--vram 16M -- true'); return $status == 5 }, 'he is let');
    host('rm /etc/polkit-1/rules.d/50-theo.rules /etc/polkit-1/rules.d/10-wheel.rules; groupdel -f wheel; systemctl restart polkit');
    given_back();
    return $said;
});

point('the packages\' own test (autopkgtest) is green', sub {
    host('mkdir /run/autopkgtest');
    VGPU::Command::run([VGPU::Lab::rig('put', 'packaging/debian/tests/slices', '/run/autopkgtest/')]);
    my $said = host('AUTOPKGTEST_TMP=/run/autopkgtest /run/autopkgtest/slices 2>&1', timeout => 240);
    host('rm -r /run/autopkgtest');
    return $said;
});

host('vgpuctl tenant remove run; userdel rita; userdel theo');
point('nothing is left', sub {
    my $left = slices() . host('ls /run/vgpu/containers; systemctl list-units --no-legend "vgpu-run-*"');
    die $left if $left =~ /[0-9a-f]{8}-[0-9a-f]{4}-/;
    return $left;
});

done_testing();
