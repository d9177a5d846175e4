#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A host with three GPUs: vGPUs are placed by vgpuctl's options, checked in sysfs and not by vgpud's statements; and a
# GPU that is removed with its vGPUs does not affect the others'. Only the first GPU of the rig can compute, so the
# engines of the others' vGPUs do not live.
# Rig: --gpus 3
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Test;
use VGPU::Whole;

my ($red, $blue) = baseline();
my ($gpu, @more) = VGPU::Lab::host('lspci -Dn -d 1af4:1050') =~ /^(\S+)/mg;
die "this rig has no second and third GPU (rig up --gpus 3)\n" if @more < 2;
@more = @more[0, 1];
my $before = VGPU::Host::ledger();
my ($no_room) = (7);
my %left;    # UUIDs of those that are made here

sub host { return VGPU::Lab::host(@_) }

# The kernel's GPU of each of these vGPUs: UUID to the GPU's address.
sub places {
    my (@uuids) = @_;
    my $text = host('readlink -f ' . join ' ', map { "/sys/bus/mdev/devices/$_" } @uuids);
    my %at;
    $at{$2} = $1 while $text =~ m{/([^/]+)/([0-9a-f-]{36})$}mg;
    return \%at;
}

# Makes vGPUs and returns how many of them the kernel has on each GPU.
sub make {
    my ($words) = @_;
    my @made = map { $_->{Uuid} } @{ decode_json(host("vgpuctl -o json vgpu create $words", timeout => 180)) };
    @left{@made} = ();
    my $at = places(@made);
    my %count;
    $count{ $at->{$_} // 'nowhere' }++ for @made;
    return \%count;
}

sub refused {
    my ($words, $pattern) = @_;
    my $said = host("vgpuctl vgpu create $words 2>&1", fail => 1, timeout => 180);
    die "status $VGPU::Command::status: $said" if $VGPU::Command::status != $no_room || $said !~ $pattern;
    return $said;
}

sub must_be {
    my ($seen, %wanted) = @_;
    my $text = sub { my ($count) = @_; return join ', ', map { "$_: $count->{$_}" } sort keys %$count };
    die 'they are on ' . $text->($seen) . ', not on ' . $text->(\%wanted) . "\n" if $text->($seen) ne $text->(\%wanted);
    return $text->($seen);
}

sub remove_all {
    host("vgpuctl slice remove $_", timeout => 120) for sort keys %left;
    %left = ();
    return;
}

my $conf = host('cat /etc/vgpu/gpus.conf');

point('two more GPUs are shared, and have types and room of their own', sub {
    host('cat >>/etc/vgpu/gpus.conf', stdin => join '', map { "[gpu $_]\nmode=shared\nvram=512M\n" } @more);
    host('vgpuctl reload && systemctl start ' . join(' ', map { "vgpu-registrar\@$_.service" } @more), timeout => 180);
    VGPU::Whole::until_mode($_, 'shared') for @more;
    my @listed = grep { my $seen = $_; grep { $_ eq $seen->{Address} } @more } @{ decode_json(host('vgpuctl -o json gpu list')) };
    die "not both\n" if @listed != 2;
    for my $seen (@listed) {
        die "$seen->{Address}: promised $seen->{PromisedVram}\n" if $seen->{PromisedVram} || !@{ $seen->{MdevTypes} };
    }
    return host('vgpuctl gpu list; vgpuctl topo');
});

my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever --pause 500') } $red, $blue;
$_->expect(qr/^OK round 1:/m, 120) for @jobs;

point('without an option the fullest GPU that has room is taken, so that others stay free', sub {
    my $first = must_be(make('sixteenth -n 2'), $gpu => 2);
    # A half has room on the others only, and the next small one is placed on the fullest again.
    my $half = make('half');
    my ($there) = keys %$half;
    die "a half is on $there, which has no room for it\n" if $there eq $gpu;
    return "$first; a half: $there; " . must_be(make('half'), $there => 1);
});
remove_all();

point('spread: the emptiest, one after the other', sub {
    return must_be(make('eighth -n 2 --policy spread'), map { $_ => 1 } @more);
});
remove_all();

point('a GPU that is named, or named not to be', sub {
    my $seen = must_be(make("sixteenth --gpu $more[1]"), $more[1] => 1);
    $seen .= '; ' . must_be(make("sixteenth --not-gpu $gpu --not-gpu $more[1]"), $more[0] => 1);
    return "$seen; " . refused("full --gpu $gpu", qr/are free|no room/i);
});
remove_all();

point('replicas: never two on one GPU, and the one too many is refused with a reason for each GPU', sub {
    my $seen = must_be(make('sixteenth -n 3 --replica web'), map { $_ => 1 } $gpu, @more);
    my $said = refused('sixteenth --replica web', qr/replica|web/);
    my @unsaid = grep { $said !~ /\Q$_\E/ } $gpu, @more;
    die "nothing is said of @unsaid:\n$said" if @unsaid;
    return "$seen\n$said" . must_be(make('sixteenth --replica other'), $gpu => 1);
});
remove_all();

point('a job stays together', sub {
    must_be(make("sixteenth --gpu $more[1] --job train"), $more[1] => 1);
    return must_be(make('sixteenth -n 2 --job train'), $more[1] => 2);
});
remove_all();

point('more than one GPU has, all or none', sub {
    my $said = refused('half -n 5', qr/there is room for/);
    my $count = host('ls /sys/bus/mdev/devices | wc -l');
    die "there are $count" if $count != 2;
    return $said . must_be(make('half -n 4'), map { $_ => 2 } @more);
});
remove_all();

point('a GPU goes away with its vGPUs: guests of another compute on, and it is taken no more', sub {
    make("sixteenth -n 2 --gpu $more[1]");
    my $events = VGPU::Lab::host_job('exec vgpuctl events');
    sleep 2;
    host("echo 1 >/sys/bus/pci/devices/$more[1]/remove", timeout => 60);
    $events->expect(qr/\Q$more[1]\E/, 30);
    $events->stop;
    my $left = host('ls /sys/bus/mdev/devices');
    my @there = grep { $left =~ /$_/ } keys %left;
    die "its vGPUs are there still: @there\n" if @there;
    my $said = refused("sixteenth --gpu $more[1]", qr/./);
    my $seen = must_be(make('eighth -n 2 --policy spread'), $more[0] => 2);
    return "$said$seen; " . join '; ', map { keeps_computing($_) } @jobs;
});

point('it comes back, is shared again, and has room', sub {
    host('echo 1 >/sys/bus/pci/rescan; udevadm settle', timeout => 60);
    VGPU::Whole::until_mode($more[1], 'shared', 60);
    my $seen = must_be(make("sixteenth --gpu $more[1]"), $more[1] => 1);
    return "$seen; " . join '; ', map { keeps_computing($_) } @jobs;
});

point('nothing is left of it, and both guests have computed all the time', sub {
    my $there = host('vgpuctl -o json vgpu list');
    delete $left{$_} for grep { $there !~ /$_/ } keys %left;
    remove_all();
    host("vgpuctl gpu mode $_ host", timeout => 120) for @more;
    host('cat >/etc/vgpu/gpus.conf; rm -f /var/lib/vgpu/gpus.conf; vgpuctl reload', stdin => $conf);
    my $seen = join '; ', VGPU::Compute::stop_right($red, $jobs[0]), VGPU::Compute::stop_right($blue, $jobs[1]);
    VGPU::Host::must_be_sane($before, $red->{vgpu}, $blue->{vgpu});
    return $seen;
});

done_testing();
