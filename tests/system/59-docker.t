#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The same slices with docker, with containerd and runc below it: with CDI's settings, an image computes with the
# native and the guarded door, is held to its slice, and gives it back when it is killed. 57-containers-*.t test the
# rest, with podman. containerd's own CDI is for Kubernetes' interface, for which Debian 13 has no client; its ctr
# knows no CDI.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Remains;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $kind = $VGPU::Slice::kind;
my $web = 'cd200000-0000-4000-8000-000000000001';
my $safe = 'cd200000-0000-4000-8000-000000000002';
my $mib = 2**20;
my @storage = qw(/var/lib/docker /var/lib/containerd);
my @units = qw(docker.socket docker.service containerd.service);
my $compute = $VGPU::Slice::compute;
my $info = "sh -c '$VGPU::Slice::vulkaninfo'";
my ($before, $with_guard);

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub refused { return VGPU::Slice::refused(@_) }
sub soon { return VGPU::Slice::soon(@_) }
sub container_of { my ($id) = @_; return VGPU::Slice::in_ledger($id)->{Container} }
sub members { my ($id) = @_; return (VGPU::Slice::in_arbiter($gpu, $id) // {})->{members} }

# The slice is free, and of its container nothing is left that was not there when $before was taken.
sub given_back {
    my ($id, $seen) = @_;
    soon(sub { container_of($id) eq '' && !members($id) }, "slice $id is not given back");
    return VGPU::Remains::none($gpu, $seen // $with_guard);
}

# A command in a new container of docker's, with a slice. $options: docker's.
sub docker {
    my ($slice, $options, $command) = @_;
    return "docker run --network none --log-driver none --device $kind=$slice $options -v $VGPU::Slice::programs:/opt:ro debian-mesa $command";
}

sub run { my ($command) = @_; return host("$command 2>&1", timeout => 240) }

point('docker runs, as Debian has it, with CDI as the guide says', sub {
    VGPU::Slice::mount_image(@storage);
    $before = VGPU::Remains::take($gpu);
    host(<<"SH", timeout => 300);
set -e
mkdir -p /etc/docker
printf '%s\\n' '{"features": {"cdi": true}, "iptables": false, "bridge": "none"}' >/etc/docker/daemon.json
systemctl unmask @units
systemctl start docker
SH
    ctl("slice create --vram 64M --door native --name web --uuid $web");
    ctl("slice create --vram 32M --door guarded --name safe --uuid $safe");
    $with_guard = VGPU::Remains::take($gpu);
    return host(VGPU::Slice::tar() . ' | docker import - debian-mesa', timeout => 900) . host('docker version; docker images', timeout => 120);
});

point('a container computes by the door native, sees its slice as its GPU, and has no other node', sub {
    my $verdict = VGPU::Compute::verdict(run(docker('web', '--rm', $compute)));
    my $heap = VGPU::Slice::heap(run(docker('web', '--rm', $info)));
    die "heap of $heap\n" if $heap != 64 * $mib;
    my $nodes = run(docker('web', '--rm', "find /dev -name 'render*' -o -name 'card*'"));
    die "it has: $nodes" if $nodes !~ m{\A/dev/dri/renderD\d+\n\z};
    given_back($web);
    return $verdict;
});

point('by the door guarded, without a node', sub {
    my $verdict = VGPU::Compute::verdict(run(docker('safe', '--rm', $compute)));
    my $heap = VGPU::Slice::heap(run(docker('safe', '--rm', $info)));
    die "heap of $heap\n" if $heap != 32 * $mib;
    my $nodes = run(docker('safe', '--rm', "find /dev -path '/dev/dri*'"));
    die "it has: $nodes" if $nodes =~ /\S/;
    given_back($safe);
    return $verdict;
});

# docker mounts them over what CDI has mounted.
point('with --read-only and --tmpfs /run a container has its slice, and so has docker exec', sub {
    my $hard = '--read-only --tmpfs /run --tmpfs /tmp';
    my $seen = VGPU::Compute::verdict(run(docker('web', "--rm $hard", $compute))) . VGPU::Compute::verdict(run(docker('safe', "--rm $hard", $compute)));
    run(docker('web', "-d --name hard1 $hard", 'sleep 600'));
    my $heap = VGPU::Slice::heap(run("docker exec hard1 $info"));
    run('docker rm -f hard1');
    die "a heap of $heap\n" if $heap != 64 * $mib;
    given_back($_) for $web, $safe;
    host('mkdir -p /run/nothing');
    refused(docker('web', '--rm -v /run/nothing:/run:ro', 'true'), qr{is covered by what the container has mounted on /run; mount nothing there});
    given_back($web);
    return $seen;
});

# Such programs have the variables of the image and of docker's command line, and none of CDI's.
point('docker exec and health checks: by either door their programs have the slice', sub {
    my %size = (web => 64, safe => 32);
    # Two of them fit into a slice.
    my $small = "$compute --size 65536 --rounds 1";
    my $seen = '';
    for my $slice (qw(web safe)) {
        run(docker($slice, "-d --name exec1 --health-cmd '$small' --health-interval 5s --health-timeout 120s --health-retries 1", 'sleep 600'));
        my $env = run('docker exec exec1 env');
        die "it has the variables:\n$env" if $env =~ /^(?:VGPU|VN|VTEST)_/m;
        my $heap = VGPU::Slice::heap(run("docker exec exec1 $info"));
        die "$slice: a heap of $heap\n" if $heap != $size{$slice} * $mib;
        $seen .= VGPU::Compute::verdict(run("docker exec exec1 $small"));
        soon(sub { run(q(docker inspect -f '{{.State.Health.Status}}' exec1)) =~ /^healthy/ }, "$slice: its health check does not compute");
        run('docker rm -f exec1');
        given_back($slice eq 'web' ? $web : $safe);
    }
    return $seen;
});

point('a slice is one container\'s, and docker says so; one that is killed gives everything back', sub {
    run(docker('web', '-d --name web1', "$compute --forever"));
    soon(sub { members($web) }, 'it does not compute');
    my $said = ctl('slice list') . refused(docker('web', '--rm', 'true'), qr/container [0-9a-f]+ has it/);
    run('docker kill web1 && docker rm web1');
    given_back($web);
    return $said;
});

point('of those that it starts again by itself each has its slice', sub {
    run(docker('web', '-d --restart always --name web1', "$compute --forever"));
    soon(sub { members($web) }, 'it does not compute');
    my $before = run(q(docker inspect -f '{{.State.Pid}}' web1));
    host("kill -9 $before");
    soon(sub { run(q(docker inspect -f '{{.State.Pid}}' web1)) !~ /^(0|$before)$/ && container_of($web) ne '' && members($web) },
        'it does not compute again');
    run('docker rm -f web1');
    given_back($web);
    return '';
});

point('nothing is left', sub {
    ctl("slice remove $_") for $web, $safe;
    host("systemctl stop @units; rm -r /etc/docker; systemctl mask @units", timeout => 120);
    VGPU::Slice::unmount_image(@storage);
    VGPU::Slice::must_have_gone($gpu, $web, $safe);
    VGPU::Remains::none($gpu, $before);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return computes($red) . computes($blue);
});

done_testing();
