#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Which container uses a slice: one at a time, until it ends, however it ends and whether or not the end is reported; two
# slices of one GPU in one container. Its end is checked on the host and below it, not by vgpud's and the arbiter's
# statements.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Podman;
use VGPU::Remains;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $web = 'cd100000-0000-4000-8000-000000000001';
my $db = 'cd100000-0000-4000-8000-000000000002';
my $mib = 2**20;
my $storage = '/var/lib/containers';
my $before;

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub slice { return VGPU::Slice::in_ledger(@_) }
sub status { return VGPU::Slice::in_arbiter($gpu, @_) }
sub refused { return VGPU::Slice::refused(@_) }
sub soon { return VGPU::Slice::soon(@_) }

# Nothing of the containers that used them is left, and the slices are free.
sub given_back {
    my (@ids) = @_;
    my $said = VGPU::Remains::none($gpu, $before);
    soon(sub { !grep { slice($_)->{Container} ne '' || status($_)->{members} || status($_)->{vram_used} } @ids }, 'it has it still');
    return $said;
}

# The log says why a container is refused.
sub refused_a_container {
    my $said = refused(VGPU::Podman::idle(@_), qr/hook/);
    my $log = host('journalctl -q --no-pager -t vgpu-container-hook -n 3');
    die "the log does not say why:\n$log" if $log !~ /container [0-9a-f]+ has it/;
    return $said . $log;
}

point('two slices', sub {
    VGPU::Slice::mount_image($storage);
    $before = VGPU::Remains::take($gpu);
    my $said = ctl("slice create --vram 32M --door native --name web --uuid $web")
        . ctl("slice create --vram 24M --door native --name db --uuid $db");
    soon(sub { status($web) && status($db) }, 'the arbiter does not know them');
    return $said . VGPU::Remains::describe($before);
});

point('a slice is one container\'s; one that is killed gives everything back', sub {
    VGPU::Podman::computing('web1', $web, 'web');
    soon(sub { slice($web)->{VramUsed} }, 'it uses no memory');
    my $seen = slice($web);
    die encode_json($seen) if $seen->{Container} !~ /^[0-9a-f]{12}/;
    my $there = VGPU::Remains::take($gpu);
    die 'nothing of it is seen: ' . VGPU::Remains::describe($there) if !VGPU::Remains::is_more($there, $before);
    my $said = ctl('slice list') . VGPU::Remains::describe($there) . refused_a_container('web');
    $said .= refused('vgpuctl slice remove web', qr/has slice $web/) . refused("vgpuctl gpu mode $gpu host", qr/has slice $web/);
    VGPU::Podman::killed('web1');
    return $said . given_back($web);
});

# podman cannot remove a container whose conmon has ended: it stays in its list.
point('nobody tells that it has ended: vgpud sees it, when it is there again, too', sub {
    VGPU::Podman::computing('lost', $web, 'web');
    my ($pid, $conmon) = split ' ', host(q(podman inspect -f '{{.State.Pid}} {{.State.ConmonPid}}' lost));
    host('systemctl stop vgpud');
    host("kill -9 $conmon $pid");
    host('systemctl start vgpud');
    return given_back($web);
});

point('vgpud is stopped and the arbiter killed while it computes: it goes on, and its end is quick', sub {
    VGPU::Podman::computing('web1', $web, 'web');
    my $arbiter = "vgpu-arbiter\@$gpu.service";
    my $pid = host("systemctl show -P MainPID $arbiter");
    my ($took, $said) = @{ VGPU::Host::without_vgpud(sub {
        host("systemctl kill -s KILL $arbiter");
        soon(sub { host("systemctl show -P MainPID $arbiter") !~ /^0$|^$pid/ && VGPU::Slice::ask_arbiter($gpu) }, 'there is no other arbiter');
        soon(sub { (status($web) // {})->{members} }, 'it is not back');
        my $begin = time;
        VGPU::Podman::end('web1');
        return [time - $begin, refused(VGPU::Podman::idle('web'), qr/hook/)];
    }) };
    return sprintf('the end took %.1f s; ', $took) . $said . given_back($web);
});

point('two containers, two slices: each its own', sub {
    VGPU::Podman::computing('web1', $web, 'web');
    my $beside = VGPU::Remains::take($gpu);
    my $heap = VGPU::Podman::heap('db');
    die "heap of $heap\n" if $heap != 24 * $mib;
    my $said = VGPU::Podman::computes('db') . "\n" . ctl('slice list');
    soon(sub { !status($db)->{members} && !status($db)->{vram_used} }, 'the second is charged still');
    my @users = sort keys %{ VGPU::Remains::take($gpu)->{users} };
    die "not those who were there: @users\n" if "@users" ne join ' ', sort keys %{ $beside->{users} };
    VGPU::Podman::end('web1');
    return $said . given_back($web, $db);
});

# $web comes first, by UUID: the arbiter counts both with it.
point('two slices of one GPU in one container: one share, as large as both, for as long as it is there', sub {
    my $heap = VGPU::Podman::heap([qw(db web)]);
    die "heap of $heap\n" if $heap != 56 * $mib;
    # 40 MiB in five buffers: more than either has.
    die "it can't use both\n" if !VGPU::Podman::has_memory_for([qw(db web)], 2 * $mib);
    soon(sub { status($db) && status($web)->{vram_limit} == 32 * $mib }, 'they are not apart again');
    die "one alone has as much\n" if VGPU::Podman::has_memory_for('web', 2 * $mib);
    VGPU::Podman::computing('both', $web, 'web', 'db');
    my $shown = ctl('slice list');
    die encode_json(slice($db)) if slice($db)->{CountedWith} ne $web || slice($db)->{Container} ne slice($web)->{Container};
    die encode_json(status($web)) if status($web)->{vram_limit} != 56 * $mib || status($db);
    my $said = refused('vgpuctl slice remove db', qr/has slice $db/);
    ctl('slice set db --vram 16M');
    soon(sub { status($web)->{vram_limit} == 48 * $mib }, 'a change of the second is not told');
    ctl('slice set db --vram 24M');
    VGPU::Podman::killed('both');
    soon(sub { status($db) && status($web)->{vram_limit} == 32 * $mib }, 'they are not apart again');
    return $shown . $said . given_back($web, $db);
});

point('the second of two is refused: the container does not start, and the first is given back', sub {
    VGPU::Podman::computing('db1', $db, 'db');
    my $said = refused_a_container('web', 'db');
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    die encode_json(status($web)) if status($web)->{vram_limit} != 32 * $mib;
    die encode_json(slice($db)) if slice($db)->{Container} eq '' || !status($db)->{members};
    VGPU::Podman::end('db1');
    return $said . given_back($web, $db);
});

point('nothing is left', sub {
    ctl("slice remove $_") for qw(web db);
    VGPU::Slice::unmount_image($storage);
    VGPU::Slice::must_have_gone($gpu, $web, $db);
    my $said = VGPU::Remains::none($gpu, $before);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return $said . computes($red) . computes($blue);
});

done_testing();
