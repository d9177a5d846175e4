# SPDX-License-Identifier: MIT
# The page of Cockpit on L1: Cockpit and the page are there, and Chromium, which runs in the rig's Debian tree, looks at them.
package VGPU::Page;

use strict;
use warnings;

use JSON::PP;
use Test::More ();
use VGPU::Command;
use VGPU::Lab;

my $stage = 'build/page/stage';
# With this key programs in the Debian tree, which do not see the rig's, reach L1.
my $key = 'build/page/key';
# One page's points may take this long: everything that they look at runs on emulated processors.
my $limit = 1800;

# Installs the page as `make install-cockpit` does.
sub install {
    VGPU::Command::run(['bash', '-c', <<'SH', $stage, $key], timeout => 600, name => '[build] make install-cockpit');
set -e
rm -rf "$0" "$1" "$1.pub"
mkdir -p build/page
flock build/page/lock make --no-print-directory install-cockpit DESTDIR="$PWD/$0" PREFIX=/usr
ssh-keygen -q -t ed25519 -N '' -f "$1"
SH
    VGPU::Command::run(['bash', '-c', 'tar -C "$0" --owner=0 --group=0 -cf - . | "$@"', $stage,
        VGPU::Lab::rig('run', '--', 'tar', '-C', '/', '-xf', '-', '--no-overwrite-dir')], timeout => 120);
    VGPU::Command::run([VGPU::Lab::rig('put', "$key.pub", '/root/.ssh/page.pub')]);
    # A login may take 60 seconds by default, which is short for an emulated processor with VMs on it. Administrative access
    # comes by pkexec, and so from polkit, instead of by sudo.
    VGPU::Lab::host(<<'SH', timeout => 120);
set -e
cat /root/.ssh/page.pub >>/root/.ssh/authorized_keys
mkdir -p /etc/cockpit
printf '[basic]\ntimeout=600\n' >/etc/cockpit/cockpit.conf
cat >/etc/cockpit/shell.override.json <<'END'
{"bridges": [{"label": "polkit", "privileged": true,
    "spawn": ["pkexec", "--disable-internal-agent", "cockpit-bridge", "--privileged"]}]}
END
systemctl restart cockpit.socket
SH
    return;
}

# Users who can log in; the value is more words for useradd. Their passwords are their names. Their managers run already: that
# takes longer than the login itself.
sub add_users {
    my (%users) = @_;
    for my $user (sort keys %users) {
        VGPU::Lab::host("id -u $user 2>/dev/null || useradd -m -s /bin/bash $users{$user} $user; echo $user:$user | chpasswd;"
            . " loginctl enable-linger $user", timeout => 120);
    }
    return;
}

# The port of L1's ssh on this machine.
sub port {
    my $rigs = decode_json(VGPU::Command::run([VGPU::Lab::rig('status', '--json')]))->{rigs};
    return $rigs->{$VGPU::Lab::rig_name}{port} // die "the rig is not up\n";
}

# Runs a program of tests/system/page, in which each point is one here.
sub points {
    my ($program) = @_;
    my $job = VGPU::Command::start([VGPU::Lab::rig('build', '--with', 'tests/page/packages.txt', '--',
        'node', "tests/system/page/$program", port(), $key)]);
    my ($shown, $planned, $end) = (0, 0, time + $limit);
    while (1) {
        my $running = $job->running;
        my $new = substr $job->output, $shown;
        $new =~ s/[^\n]*\z// if $running;
        $shown += length $new;
        $planned |= relay($_) for split /\n/, $new;
        last if !$running || time > $end;
        sleep 1;
    }
    $job->stop;
    Test::More::ok(0, "$program ran to its end") if !$planned;
    return;
}

# A line of TAP. True: it is the plan, and so the last.
sub relay {
    my ($line) = @_;
    return 1 if $line =~ /^1\.\.\d/;
    if ($line =~ /^(not )?ok \d+ - (.*)/) { Test::More::ok(!$1, $2) }
    else { Test::More::diag($line =~ s/^# //r) }
    return 0;
}

1;
