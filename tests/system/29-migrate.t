#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A VM with a vGPU moves from one GPU host to another and back, by virsh migrate, while it runs: with an idle GPU, and with
# programs that compute, by Vulkan and by CUDA (on the fake card). A host whose vGPU does not fit refuses, and the guest does
# not notice. A second rig is the other host; libvirt and QEMU reach it through ssh.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::GuestCuda;
use VGPU::Host;
use VGPU::Saved;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $blue->{vgpu};
my $vm = VGPU::Saved->new($blue);
my %rig = (here => $VGPU::Lab::rig_name, there => "$VGPU::Lab::rig_name-there");
my %other = (here => 'there', there => 'here');
my $images = '/var/lib/libvirt/images';

sub host { return VGPU::Lab::host(@_) }
sub at { my ($place, $code) = @_; return VGPU::Lab::at($rig{$place}, $code) }

# Of QEMU's memory and of its disks, on the target.
my @ports = (49152, 49153);

# root's way from one host to the other is the outer machine, which has each host's ssh on a port.
sub connect_to {
    my ($place) = @_;
    my $port = decode_json(VGPU::Command::run([VGPU::Lab::rig('status', '--json')]))->{rigs}{ $rig{$place} }{port};
    my ($key) = VGPU::Command::run([VGPU::Lab::ssh(), '-G'], fail => 1) =~ /^identityfile (.*)$/m;
    open my $in, '<', $key or die "$key: $!\n";
    my $text = do { local $/ = undef; <$in> };
    host('umask 077; mkdir -p /root/.ssh; cat >/root/.ssh/rig', stdin => $text);
    host("cat >/root/.ssh/config; umask 077; cp /root/.ssh/config /root/.ssh/config.own", stdin => <<"CONFIG");
Host $place
    HostName 10.0.2.2
    Port $port
    IdentityFile /root/.ssh/rig
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
CONFIG
    return host("ssh $place hostname", timeout => 60);
}

# blue's disk: the same base on both hosts, and what has changed is copied.
sub migrate {
    my ($to, %opt) = @_;
    my $from = $other{$to};
    at($to, sub {
        host("rm -f $images/blue-root.qcow2; eval \"\$(/usr/local/lib/rig/guest disks trixie)\"; "
            . "qemu-img create -q -f qcow2 -F raw -b \$root $images/blue-root.qcow2");
        VGPU::Lab::adopt_guest('blue', $blue->{address});
    });
    my $tunnels = join ' ', map { "-L $_:127.0.0.1:$_" } @ports;
    my $said = at($from, sub {
        host("ssh -f -N -M -S /run/tunnel -o ExitOnForwardFailure=yes $tunnels $to </dev/null >/dev/null 2>&1", timeout => 60);
        my $said = host("virsh migrate --live --persistent --undefinesource --copy-storage-inc --timeout 200 blue "
            . "qemu+ssh://$to/system tcp://127.0.0.1:$ports[0] --disks-port $ports[1] --listen-address 127.0.0.1 2>&1",
            timeout => 500, fail => $opt{fail});
        my $status = $VGPU::Command::status;
        host("ssh -S /run/tunnel -O exit $to 2>&1", fail => 1);
        $VGPU::Command::status = $status;
        return $said;
    });
    return $said;
}

END { at(there => sub { VGPU::Lab::down() }) if defined $rig{there} && !$ENV{KEEP} }

point('a second GPU host has a vGPU of the same UUID', sub {
    $red->destroy;
    at(there => sub {
        VGPU::Lab::down();
        VGPU::Lab::up();
        VGPU::Lab::install();
        VGPU::Lab::share(VGPU::Lab::gpu(), '512M');
        $vgpu->start(VGPU::Lab::gpu());
        $vgpu->wait_engine;
        $vm->display(1);
        VGPU::GuestCuda::install();
        VGPU::GuestCuda::offer($vgpu);
        connect_to('here');
    });
    return connect_to('there');
});

point('the VM that is to be migrated computes', sub {
    $blue->destroy;
    $vm->display(1);
    VGPU::GuestCuda::install();
    VGPU::GuestCuda::offer($vgpu);
    $vm->start;
    VGPU::GuestCuda::put_programs($blue);
    return computes($blue) . VGPU::GuestCuda::run($blue, 'compute');
});

point('a host whose vGPU has less memory refuses before the VM is stopped', sub {
    my $vram = "/sys/bus/mdev/devices/$vgpu->{uuid}/vgpu/vram_bytes";
    my ($bytes) = at(there => sub { host("cat $vram; echo 33554432 >$vram") }) =~ /^(\d+)/;
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu), '--forever --pause 500');
    keeps_computing($job, 2);
    my $said = migrate('there', fail => 1);
    die "it went there\n" if $VGPU::Command::status == 0;
    my $log = at(there => sub { host("dmesg | grep 'saved vGPU can'; echo $bytes >$vram") });
    die "$said$log" if $log !~ /it has more memory/;
    keeps_computing($job, 2);
    return $said . $log . VGPU::Compute::stop_right($blue, $job);
});

point('it moves, and its guest does not notice: the screen is there, and it computes there', sub {
    my $boot = $vm->boot;
    my $picture = $vm->write_on_screen('here');
    migrate('there');
    VGPU::Host::wait_state($vgpu, qr/device=closed/);
    return at(there => sub {
        my $up = $vm->must_be_back($boot);
        my $screen = $vm->must_show($picture, 'there');
        return "$up, $screen, " . computes($blue) . VGPU::GuestCuda::run($blue, 'compute');
    });
});

point('it comes back while it computes: its programs lose the GPU, and say so; the next ones compute', sub {
    my $boot = at(there => sub {
        $vm->start_program;
        VGPU::GuestCuda::start_that_is_lost($blue);
        return $vm->boot;
    });
    migrate('here');
    my $up = $vm->must_be_back($boot);
    my $next = computes($blue) . VGPU::GuestCuda::run($blue, 'compute');
    my $lost = VGPU::GuestCuda::must_be_lost($blue);
    VGPU::GuestCuda::nothing_left($vgpu);
    at(there => sub { VGPU::GuestCuda::nothing_left($vgpu) });
    return "$up\n" . $vm->program_has_failed . $lost . $next;
});

point('neither host\'s kernel has complained, and the vGPUs are there', sub {
    return join "\n", map {
        my $place = $_;
        at($place => sub {
            my $complaints = VGPU::Lab::kernel_complaints();
            die "$place: $complaints" if $complaints =~ /\S/;
            return "$place: " . $vgpu->attribute('state');
        });
    } qw(here there);
});

point('without a display all is as before', sub {
    $blue->destroy;
    VGPU::GuestCuda::withdraw($vgpu);
    VGPU::GuestCuda::remove();
    host('virsh -q define /run/blue.xml');
    $vm->display(0);
    VGPU::Tenant::start($red, $blue);
    $_->wait_up for $red, $blue;
    VGPU::Compute::install($blue);
    $blue->attach($vgpu);
    return computes($blue);
});

done_testing();
