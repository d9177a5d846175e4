#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The file system of vgpud's database is full: what would have to be stored is refused with a clear message, and
# changes nothing, neither in the kernel nor in mdevctl's files. Guests compute all the time, and once there is room
# everything works again.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $before = VGPU::Host::ledger();
my $state = '/var/lib/vgpu';
my $fresh = 'f0110000-0000-4000-8000-000000000001';
my $there = 'f0110000-0000-4000-8000-000000000002';

sub host { return VGPU::Lab::host(@_) }
sub ctl { return host("vgpuctl $_[0]", timeout => 120) }

# The state of the kernel, of mdevctl, and vgpud's output: all of it, as text.
sub everything {
    return host(q{cd /sys/bus/mdev/devices && for d in *; do }
        . q{echo "$d $(cat $d/vgpu/vram_bytes $d/vgpu/weight $d/vgpu/cap $d/vgpu/tenant | tr '\n' ' ')"; done; }
        . q{grep -rH "" /etc/mdevctl.d || true; vgpuctl tenant list; vgpuctl -o json vgpu list | grep -E }
        . q{'"(Uuid|Type|Gpu|Vram|Weight|Cap|Priority|Tenant|Class|Defined|Autostart|Name)"'}, timeout => 120);
}

# It fails, says why, and nothing has changed.
sub refused {
    my ($words) = @_;
    my $all = everything();
    my $said = host("vgpuctl $words 2>&1", fail => 1, timeout => 180);
    die "vgpuctl $words did not fail:\n$said" if !$VGPU::Command::status;
    die "vgpuctl $words does not say why:\n$said" if $said !~ /file system is full/i;
    my $now = everything();
    die "vgpuctl $words failed, and changed something:\n$said\nbefore:\n$all\nnow:\n$now" if $now ne $all;
    return $said;
}

my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever --pause 500') } $red, $blue;
$_->expect(qr/^OK round 1:/m, 120) for @jobs;

point('the database is on a small file system of its own, and all works', sub {
    host(<<"SH", timeout => 120);
set -e
# It may be the first call of vgpud here: then there is no database yet.
systemctl start vgpud
systemctl stop vgpud
mkdir -p /run/vgpu-state.kept
cp -a $state/. /run/vgpu-state.kept/
mount -t tmpfs -o size=2M,mode=700 tmpfs $state
cp -a /run/vgpu-state.kept/. $state/
systemctl start vgpud
SH
    ctl('tenant set full --vgpus 3');
    return ctl("vgpu create sixteenth --define --tenant full --uuid $there") . host("df $state");
});

host("dd if=/dev/zero of=$state/filled bs=1k 2>/dev/null; dd if=/dev/zero of=$state/filled2 bs=1 count=4096 2>/dev/null; df $state", fail => 1);

for my $case (
    ['a vGPU that is to be made', "vgpu create sixteenth --uuid $fresh"],
    ['several that are to be made and defined', 'vgpu create sixteenth -n 2 --define'],
    ['a change of a vGPU', "vgpu set $there --weight 77"],
    ["a change of a vGPU that computes", "vgpu set $red->{vgpu}{uuid} --weight 77"],
    ['a vGPU that is to be removed', "vgpu remove $there"],
    ["a tenant's quota", 'tenant set full --vgpus 9'],
    ['a new tenant', 'tenant set another --vgpus 1'],
) {
    my ($what, $words) = @$case;
    point("full: $what is refused, the reason is said, nothing has changed", sub { refused($words) });
}

point('what needs nothing to be stored goes on: lists, and guests compute', sub {
    return ctl('vgpu list') . ctl('gpu list') . join '; ', map { keeps_computing($_) } @jobs;
});

point('vgpud is killed and starts on a full disk: it says what it knows, or says why it can not', sub {
    host('systemctl kill -s KILL vgpud; sleep 2');
    my $said = host('vgpuctl vgpu list 2>&1', fail => 1, timeout => 180);
    my $journal = host('journalctl -q -u vgpud -o cat -n 5');
    die "neither:\n$said$journal" if $said !~ /$there/ && "$said$journal" !~ /file system is full/i;
    return $said . join '; ', map { keeps_computing($_) } @jobs;
});

point('there is room again: all of it works, without anything being restarted by hand', sub {
    host("rm $state/filled*");
    host("timeout 60 sh -c 'until vgpuctl slice list >/dev/null 2>&1; do sleep 1; done'", timeout => 80);
    my $said = ctl("vgpu set $there --weight 78") . ctl("vgpu create sixteenth --uuid $fresh");
    ctl("vgpu remove $_") for $fresh, $there;
    ctl('tenant remove full');
    my $left = host('mdevctl list; mdevctl list --defined; vgpuctl tenant list');
    die $left if $left =~ /f0110000|full|another/;
    return $said;
});

point('both guests have computed all the time, and the host is as it was', sub {
    host(<<"SH", timeout => 120);
set -e
systemctl stop vgpud
cp -a $state/. /run/vgpu-state.kept/
umount $state
cp -a /run/vgpu-state.kept/. $state/
rm -rf /run/vgpu-state.kept
systemctl start vgpud
SH
    my $seen = join '; ', VGPU::Compute::stop_right($red, $jobs[0]), VGPU::Compute::stop_right($blue, $jobs[1]);
    VGPU::Host::must_be_sane($before, $red->{vgpu}, $blue->{vgpu});
    return $seen;
});

done_testing();
