#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA in containers that have no node of NVIDIA's: by the door guarded, with everything as it is installed but NVIDIA's
# part, as in 61-cuda.t. Two slices of the fake card, each with a guard of its own; their programs are held to memory and
# share by workers on the host, whose ends nobody else notices.
# Rig: --gpus 2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::FakeNvidia;
use VGPU::Podman;
use VGPU::Rootless;
use VGPU::Sandbox;
use VGPU::Slice;
use VGPU::Test;

my %id = (web => 'cd620000-0000-4000-8000-000000000001', db => 'cd620000-0000-4000-8000-000000000002');
my $libraries = $VGPU::FakeNvidia::libraries;
my $image = $VGPU::Slice::image;
my $own = '/run/image-own';
my $compat = '/usr/local/cuda-12.4/compat';
my @storage = qw(/var/lib/containers);
my $gpu = VGPU::FakeNvidia::gpu();
my $client = '/opt/remote-client';

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub used { return VGPU::Slice::in_arbiter($gpu, $id{$_[0]})->{vram_used} }
sub unit { return "vgpu-guard\@$id{$_[0]}.service" }

# podman's words for a container with the slice, and with $options.
sub podman { my ($slice, $options, $root) = @_; return VGPU::Podman::words("$slice-$$", $slice) . "--rm $options --rootfs " . ($root // "$image:O") }

# A program in it, to its end.
sub in_container { my ($slice, $command, %opt) = @_; return host(podman($slice, $opt{options} // '', $opt{root}) . " $command 2>&1", timeout => 240, fail => $opt{fail}) }

sub given_back {
    for my $slice (sort keys %id) {
        VGPU::Slice::soon(sub { VGPU::Slice::in_ledger($id{$slice})->{Container} eq '' }, 'the container has it still');
        VGPU::Slice::soon(sub { !used($slice) }, 'something is charged still');
    }
    return;
}

# Of its guard.
sub workers {
    my ($slice) = @_;
    my $all = VGPU::Sandbox::processes(unit($slice));
    return { map { $all->{$_}{command} =~ /vgpu-cuda-worker/ ? ($_ => $all->{$_}) : () } keys %$all };
}

# One that says "holding" and goes on.
sub started {
    my ($slice, $case) = @_;
    my $job = VGPU::Lab::host_job(podman($slice, '') . " $client $case 2>&1");
    $job->expect(qr/^holding/m, 120);
    return $job;
}

# What is asked of the fake driver in its guard.
sub set_guard { my ($slice, @more) = @_; return VGPU::FakeNvidia::set_guard($id{$slice}, @more) }

# Its sockets appear some moments after the slice.
sub make_slice {
    my ($slice, $words) = @_;
    my $said = ctl("slice create --gpu $gpu --door guarded --name $slice --uuid $id{$slice} $words");
    host("timeout 60 sh -c 'until systemctl -q is-active @{[ unit($slice) ]}; do sleep 0.2; done'", timeout => 70);
    VGPU::Slice::soon(sub { VGPU::Slice::in_arbiter($gpu, $id{$slice}) }, 'the arbiter does not know it');
    return $said;
}

sub remove_slices {
    ctl("slice remove $_") for sort keys %id;
    for my $slice (sort keys %id) {
        VGPU::Slice::soon(sub { host('systemctl is-active ' . unit($slice), fail => 1) !~ /^active/ }, 'its guard is there still');
    }
    return VGPU::Slice::must_have_gone($gpu, values %id);
}

point('a GPU at a driver called nvidia, which the fake driver serves, is shared', sub {
    VGPU::Slice::mount_image(@storage);
    VGPU::FakeNvidia::install('client-container', 'remote-client');
    return VGPU::FakeNvidia::share();
});

point('a slice has a socket and two libraries in CDI\'s file, and no node; its guard offers CUDA alone', sub {
    set_guard($_, 'FAKE_CUDA_CONTENT=1') for sort keys %id;
    my $said = make_slice('web', '--vram 64M') . make_slice('db', '--vram 128M');
    my ($device) = grep { $_->{name} eq 'web' } @{ decode_json(host('cat /var/run/cdi/mdev-vgpu.json'))->{devices} };
    my $edits = $device->{containerEdits};
    die "nodes\n" if $edits->{deviceNodes};
    my @mounts = sort map { $_->{containerPath} } @{ $edits->{mounts} };
    die "@mounts\n" if "@mounts" ne '/run/vgpu/cuda.sock /run/vgpu/cuda/web.sock /usr/lib/mdev-vgpu/guest/libcuda.so /usr/lib/mdev-vgpu/guest/libcuda.so.1 /usr/lib/mdev-vgpu/guest/libnvidia-ml.so /usr/lib/mdev-vgpu/guest/libnvidia-ml.so.1';
    my $status = host('systemctl show -P StatusText ' . unit('web'));
    die $status if $status !~ /with CUDA alone: .*no render node/;
    return $said . JSON::PP->new->pretty->encode($edits) . $status;
});

point('a container without a node computes, and what it computes is right', sub {
    my $said = in_container('web', "sh -c 'find /dev -name \"nvidia*\" -o -name dri; $client compute && $client graphs && echo right'");
    die $said if $said ne "right\n";
    given_back();
    return $said;
});

point('it is told of the slice\'s memory, and gets no more', sub {
    my $said = in_container('web', "sh -c '$client limit && /opt/client-container'");
    die $said if $said !~ /^64 MiB, 8 pieces$/m;
    given_back();
    return $said;
});

point('programs of podman exec, with no variable at all, compute, too', sub {
    my $job = started('web', 'goes-on');
    my $said = host("podman exec web-$$ env -i $client compute 2>&1", timeout => 120);
    host("podman kill -s TERM web-$$", timeout => 120);
    $job->wait(60);
    given_back();
    return $said;
});

point('an image\'s own libcuda, which would find no GPU, is covered', sub {
    host(<<"SH", timeout => 120);
set -e
mkdir -p $own$libraries $own/usr/lib64 $own/usr/bin $own$compat
cd $own
mkdir -p opt run dev proc sys etc tmp
for name in lib lib64 bin; do ln -sfn usr/\$name \$name; done
cp -L $image/lib64/ld-linux-x86-64.so.2 usr/lib64/
cp -L $image$libraries/libc.so.6 .$libraries/
cp $libraries/libcuda.so.570.1 $own$compat/libcuda.so.1
SH
    my $said = in_container('web', '/opt/client-container', root => "$own:O", options => "-e LD_LIBRARY_PATH=$compat");
    die $said if $said !~ /^64 MiB, 8 pieces$/m;
    given_back();
    return $said . in_container('web', "$client compute", root => "$own:O", options => '--read-only');
});

point('as nobody, with what a hardened container has', sub {
    my $hard = '--user 1000:1000 --read-only --tmpfs /run --tmpfs /tmp --cap-drop all --security-opt no-new-privileges';
    my $said = in_container('web', "$client compute", options => $hard);
    given_back();
    return $said;
});

point('a user of its tenant computes without root; its libraries may be on a volume', sub {
    $id{mine} = 'cd620000-0000-4000-8000-000000000003';
    VGPU::Rootless::make();
    ctl("tenant set cont --user $VGPU::Rootless::user");
    set_guard('mine', 'FAKE_CUDA_CONTENT=1');
    make_slice('mine', '--vram 64M --tenant cont');
    my $said = '';
    for my $options ('', '--read-only', '--userns=keep-id --read-only', "-v $image$libraries:$libraries:ro") {
        $said .= VGPU::Rootless::run(VGPU::Rootless::words('cont:mine', $options, "$client compute"));
        VGPU::Slice::soon(sub { VGPU::Slice::in_ledger($id{mine})->{Container} eq '' && !used('mine') }, 'the container has it still');
    }
    my $refused = VGPU::Rootless::run(VGPU::Rootless::words('web', '', "$client compute"), fail => 1);
    die "a slice of nobody was given to a user:\n$refused" if !$VGPU::Command::status;
    ctl('slice remove cont/mine');
    delete $id{mine};
    ctl('tenant remove cont');
    VGPU::Rootless::remove();
    return $said . $refused;
});

my $neighbour;
point('a worker is confined, from outside', sub {
    $neighbour = started('db', 'goes-on');
    my $workers = workers('db');
    die scalar(keys %$workers) . " workers\n" if keys %$workers != 1;
    VGPU::Sandbox::confined('the worker', $workers);
    return join "\n", map { $_->{command} } values %$workers;
});

point('a worker that is killed: its program gets error 719, the next one has a worker', sub {
    my $job = started('web', 'lost');
    my ($pid) = keys %{ workers('web') };
    host("kill -9 $pid");
    $job->wait(60);
    my $said = in_container('web', "$client compute");
    given_back_web();
    return $job->output . $said . host('journalctl -q --no-pager -o cat -n 5 -u ' . unit('web'));
});

sub given_back_web {
    VGPU::Slice::soon(sub { VGPU::Slice::in_ledger($id{web})->{Container} eq '' }, 'the container has it still');
    return VGPU::Slice::soon(sub { !used('web') }, 'something is charged still');
}

# What the arbiter says is polled on the host itself; each look takes some milliseconds there.
point('a container that is killed: its memory is the slice\'s again at once', sub {
    my $job = started('web', 'hold');
    die 'it has ' . used('web') . "\n" if used('web') < 32 * 2**20;
    my $socket = "/run/vgpu/governor/$gpu/status.sock" =~ s/:/\\:/gr;
    my ($pid) = keys %{ workers('web') };
    my $said = host(<<"SH", timeout => 120);
pid=\$(podman inspect -f '{{.State.Pid}}' web-$$)
begin=\$(date +%s%N)
kill -9 \$pid
while [ -e /proc/$pid ]; do sleep 0.005; done
echo "the worker is gone after \$(((\$(date +%s%N) - begin) / 1000000)) ms"
SH
    given_back_web();
    # Its name is free when podman has taken it away.
    $job->wait(60, fail => 1);
    return $said;
});

point('hostile clients: they end nobody but their own workers', sub {
    my $job = VGPU::Lab::host_job(podman('web', '') . " $client hostile 2>&1");
    $job->wait(240);
    my $said = in_container('web', "$client compute");
    given_back_web();
    # How many are refused depends on how fast the guard takes them.
    my $log = host('journalctl -q --no-pager -o cat -u ' . unit('web') . ' | grep -c "is refused: there are 64" || true');
    return $job->output . $said . $log;
});

point('the guard is killed: its programs are told, and the next one computes by the same socket', sub {
    my $job = started('web', 'lost');
    host('kill -9 $(systemctl show -P MainPID ' . unit('web') . ')');
    $job->wait(60);
    my $said = in_container('web', "$client compute");
    given_back_web();
    return $job->output . $said;
});

point('all the time the neighbour has computed, and was right', sub {
    $neighbour->running or die $neighbour->output;
    host("podman kill -s TERM db-$$", timeout => 120);
    $neighbour->wait(60);
    given_back();
    my $restarts = host("systemctl show -P NRestarts @{[ unit('db') ]} @{[ unit('web') ]}");
    die $restarts if join(' ', split ' ', $restarts) ne '0 1';
    return $neighbour->output . $restarts;
});

# Fills of 24 ms a line, without content, which would cost the processor more than they take. Under emulation programs
# leave the card without work, so shares would be those of the processor (test-guard-shares has them); a cap is the card's.
sub fill_for {
    my ($seconds) = @_;
    my %job = map { $_ => VGPU::Lab::host_job(podman($_, '') . " $client fill 2>&1") } sort keys %id;
    $_->expect(qr/^filled/m, 120) for values %job;
    my $count = sub { return { map { $_ => scalar(() = $job{$_}->output =~ /^filled/mg) } keys %job } };
    sleep 5;
    my $before = $count->();
    sleep $seconds;
    my $after = $count->();
    host("podman kill -s KILL $_-$$", timeout => 120) for sort keys %id;
    $_->wait(60, fail => 1) for values %job;
    given_back();
    return map { 100 * 0.024 * ($after->{$_} - $before->{$_}) / $seconds } 'web', 'db';
}

point('a slice with a cap of 4 % of the card has no more, and more without it', sub {
    remove_slices();
    set_guard($_) for sort keys %id;
    make_slice('web', '--vram 3G');
    make_slice('db', '--vram 3G');
    my ($free) = fill_for(20);
    ctl('slice set web --cap 4');
    my ($capped, $neighbour) = fill_for(30);
    my $said = sprintf "web without a cap %.1f %%, with it %.1f %%; db beside it %.1f %%\n", $free, $capped, $neighbour;
    die $said if $free < 6 || $capped > 5 || $neighbour < 6;
    return $said;
});

point('from inside, a worker can do nothing that it need not', sub {
    remove_slices();
    set_guard('web', 'FAKE_CUDA_PROBE=1');
    make_slice('web', '--vram 64M');
    in_container('web', "$client facts", fail => 1);
    my $said = host('journalctl -q --no-pager -o cat -u ' . unit('web') . ' | grep ^probe:');
    my @could = $said =~ /^(probe: .*ALLOWED)$/mg;
    die join("\n", @could) . "\n" if @could || $said !~ /^probe: ended$/m;
    return $said;
});

point('nothing is left', sub {
    ctl('slice remove web');
    VGPU::Slice::must_have_gone($gpu, values %id);
    VGPU::FakeNvidia::remove();
    host("rm -r $own");
    VGPU::Slice::unmount_image(@storage);
    return '';
});

done_testing();
