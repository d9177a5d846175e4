#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slices of a GPU for containers of a user, without root: podman's containers compute with slices of the user's tenant,
# with the native and the guarded door, and with no others, also in a unit of the user's; other users cannot reach their
# sockets.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Remains;
use VGPU::Rootless;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $web = 'cd100000-0000-4000-8000-000000000001';
my $safe = 'cd100000-0000-4000-8000-000000000002';
my $mib = 2**20;
my $compute = $VGPU::Slice::compute;
my $user = $VGPU::Rootless::user;
my $before;

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub soon { return VGPU::Slice::soon(@_) }

sub in_container {
    my ($device, $command, %opt) = @_;
    return VGPU::Rootless::run(VGPU::Rootless::words($device, '--group-add keep-groups', $command), %opt);
}

sub given_back {
    my ($id) = @_;
    soon(sub { VGPU::Slice::in_ledger($id)->{Container} eq '' && !VGPU::Slice::in_arbiter($gpu, $id)->{members} }, 'it has it still');
    return VGPU::Remains::none($gpu, $before);
}

point('a user, who has the image\'s tree', sub {
    VGPU::Slice::mount_image();
    VGPU::Rootless::make();
    host("usermod -aG render $user");
    $before = VGPU::Remains::take($gpu);
    return VGPU::Rootless::run('id');
});

point('it computes with a slice of the user\'s tenant, and with no other', sub {
    ctl("slice create --vram 64M --door native --name web --uuid $web");
    my $said = in_container('web', 'true', fail => 1);
    die "a slice of nobody was given to a user:\n$said" if !$VGPU::Command::status;
    ctl("tenant set cont --user $user");
    ctl('slice set web --tenant cont');
    # The hook's request is then polkit's first.
    host('systemctl stop polkit');
    $said .= VGPU::Compute::verdict(in_container('cont:web', $compute));
    my $heap = VGPU::Slice::heap(in_container('cont:web', qq(sh -c "$VGPU::Slice::vulkaninfo")));
    die "heap of $heap\n" if $heap != 64 * $mib;
    return "$said\n" . given_back($web);
});

point('others can\'t reach its socket past podman', sub {
    my $path = "/run/vgpu/containers/$web/slice/governor.sock";
    host("test -S $path");
    host("runuser -u nobody -- test -S $path", fail => 1);
    die "nobody sees it\n" if !$VGPU::Command::status;
    host("runuser -u nobody -- ls /run/vgpu/slices", fail => 1);
    die "nobody sees the others\n" if !$VGPU::Command::status;
    return VGPU::Rootless::run("ls -l $path");
});

point('it computes through the door guarded, without the right to the node', sub {
    host("gpasswd -d $user render");
    ctl("slice create --vram 32M --door guarded --name safe --uuid $safe --tenant cont");
    my $verdict = VGPU::Compute::verdict(in_container('cont:safe', $compute));
    ctl('slice remove cont/safe');
    return $verdict;
});

# As the guide has it: a user's unit is not ordered after vgpud, and after a boot CDI's file is not there yet.
point('a quadlet unit of the user, which is started before vgpud, has its slice', sub {
    ctl("slice create --vram 32M --door guarded --name safe --uuid $safe --tenant cont");
    VGPU::Rootless::start_manager();
    VGPU::Rootless::put_unit('infer', <<"END");
[Quadlet]
DefaultDependencies=false
[Container]
Rootfs=$VGPU::Slice::image-$user:O
AddDevice=$VGPU::Slice::kind=cont:safe
Volume=$VGPU::Slice::programs:/opt:ro
Network=none
LogDriver=none
PodmanArgs=--no-hosts
Exec=$compute --forever
[Service]
ExecStartPre=/usr/bin/vgpuctl slice list
Restart=always
RestartSec=1
TimeoutStartSec=240
END
    host('systemctl stop vgpud; rm /run/cdi/mdev-vgpu.json');
    VGPU::Rootless::manage('daemon-reload');
    VGPU::Rootless::manage('start infer');
    my $session = sub { (VGPU::Slice::in_arbiter($gpu, $safe) // {})->{members} };
    soon($session, 'it does not compute');
    my $first = VGPU::Slice::in_ledger($safe)->{Container};
    VGPU::Rootless::manage('kill -s KILL infer');
    soon(sub { VGPU::Slice::in_ledger($safe)->{Container} !~ /^(?:|\Q$first\E)$/ && $session->() }, 'it does not compute again');
    my $said = ctl('slice list');
    VGPU::Rootless::manage('stop infer');
    soon(sub { VGPU::Slice::in_ledger($safe)->{Container} eq '' }, 'it has it still');
    VGPU::Rootless::stop_manager();
    ctl('slice remove cont/safe');
    return $said;
});

point('nothing is left', sub {
    ctl('slice remove cont/web');
    ctl('tenant remove cont');
    VGPU::Rootless::remove();
    VGPU::Slice::unmount_image();
    VGPU::Slice::must_have_gone($gpu, $web, $safe);
    my $said = VGPU::Remains::none($gpu, $before);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return $said . computes($red) . computes($blue);
});

done_testing();
