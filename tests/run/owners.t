#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slices of an engine's jobs, for plain processes of a user: they compute in them and can't have more, other users can't
# use them, and vgpud killed at any point makes all that was asked for, or none. The host is RunLive's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use RunLive;
use Test::More;
use Time::HiRes 'sleep';

my ($user, $other) = (12_345, 12_346);

# A method of the manager, its arguments as GVariant's texts.
sub call {
    my ($method, @arguments) = @_;
    my $words = join ' ', map { "\"$_\"" } @arguments;
    return output_of("gdbus call --system -d org.mdev_vgpu.Host1 -o /org/mdev_vgpu/manager"
            . " -m org.mdev_vgpu.Host1.Manager.$method $words");
}

sub wanted {
    my ($owner, $part, $mib, $more) = @_;
    my $bytes = $mib << 20;
    $more //= '';
    return "{'Owner': <'$owner'>, 'Part': <'$part'>, 'Uid': <uint32 $user>, 'Door': <'native'>,"
        . " 'Vram': <uint64 $bytes>$more}";
}

sub make_slice { my ($wanted) = @_; return call('CreateSlices', "[$wanted]") }

sub uuids { return $_[0] =~ /'Uuid': <'([0-9a-f-]{36})'>/g }

sub cpu_ms {
    my @fields = split ' ', slurp('/proc/' . vgpud_pid() . '/stat') =~ s/^.*\) //sr;
    return ($fields[11] + $fields[12]) * 10;
}

# As a user of no groups, with what the door gives to a program.
sub command_as {
    my ($uid, $door, $command) = @_;
    my ($env) = $door =~ /'Env': <\[(.*?)\]>/;
    my $words = join ' ', map { "'$_'" } $env =~ /'([^']*)'/g;
    return "setpriv --reuid $uid --regid $uid --clear-groups env HOME=/ $words $command";
}

sub as { return output_of(command_as(@_)) }

# Nanoseconds of the GPU that the arbiter has measured for the slice.
sub measured {
    my ($slice) = @_;
    my $socket = IO::Socket::UNIX->new("$root/run/vgpu/governor/$gpu/status.sock") or return 0;
    local $/ = undef;
    return <$socket> =~ /"id":"$slice".*?"gpu_ns":(\d+)/s ? $1 : 0;
}

# Whether the slice computes something within a minute.
sub computes {
    my ($slice) = @_;
    my $before = measured($slice);
    return within(60, sub { measured($slice) > $before });
}

chmod 0755, "$root";
start_host('8G');

# With a cap its work is measured, though nobody else has any.
my $cap = ", 'Cap': <uint32 60>";
my ($text, $status) = make_slice(wanted('slurm:c:1', 0, 64, $cap));
my ($uuid) = uuids($text);
ok($uuid, 'an owner gets a slice') or BAIL_OUT($text);
my ($door) = call('GetDoor', $uuid);
within(20, sub { -S "$root/run/vgpu/containers/$uuid/slice/governor.sock" });
($text, $status) = as($user, $door, "$build/guest/vk-compute --rounds=2 --size 65536");
is($status, 0, 'its user computes in it') or diag($text, $door, slurp("$root/arbiter.log"));
like($text, qr/verified on llvmpipe/, "the owner's user computes on the GPU");
($text) = as($user, $door, "$fill 512");
like($text, qr/^heap 64 MiB$/m, 'it sees as much memory as the slice has');
like($text, qr/^has (?:56|64) MiB$/m, 'and can have no more') or diag($text);
($text, $status) = as($other, $door, "$fill 8");
isnt($status, 0, 'another user gets no GPU by it') or diag($text);
unlike($text, qr/^has/m, 'another user gets no memory by the native door');
like((output_of("$vgpuctl gpu users $gpu"))[0], qr/slurm job 1 has slice $uuid/, 'the job is a user of the GPU');

# By the guarded door. Its limits are for hosts that have dma-bufs: tests/system/57-containers-guarded.t.
my ($shut) = uuids((make_slice(wanted('slurm:c:4', 0, 64) =~ s/native/guarded/r))[0]);
my ($by_guard) = call('GetDoor', $shut);
start_guard($shut);
my $venus = 'env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/virtio_icd.json';
($text, $status) = as($user, $by_guard, "$venus $build/guest/vk-compute --rounds=2 --size 65536");
is($status, 0, 'by a guard its user computes, too') or diag($text, $by_guard, slurp("$root/guard.log"));
like($text, qr/verified on Virtio-GPU Venus/, "the owner's user computes through the guard's socket");
($text, $status) = as($other, $by_guard, "$venus $fill 8");
isnt($status, 0, 'another user gets no GPU by it') or diag($text);
unlike($text, qr/^has/m, 'another user gets no memory by the guard');
call('ReleaseOwner', 'slurm:c:4', '{}');
ok(!-e "$root/run/vgpu/guard/$shut", 'and nothing is left of the door');

# A job that has ended before anybody looked at it.
my ($short) = uuids((make_slice(wanted('slurm:c:3', 0, 64)))[0]);
within(20, sub { -S "$root/run/vgpu/containers/$short/slice/governor.sock" });
my ($its_door) = call('GetDoor', $short);
($text) = as($user, $its_door, "$fill 32");
like($text, qr/^has 32 MiB$/m, 'a short job takes half of its memory') or diag($text);
($text) = output_of("$vgpuctl -o json slice show $short");
like($text, qr/"VramUsed" : 0,/, 'and has returned it') or diag($text);
like($text, qr/"PeakVram" : [34]\d{7},/, 'its peak is shown') or diag($text);
# An exposition is kept for a second.
ok(within(20, sub { metrics() =~ /^vgpu_job_vram_peak_bytes\{owner="slurm:c:3"\} [34]\d{7}$/m }), 'it is a metric') or diag(metrics());
like(metrics(), qr/^vgpu_job_gpu_seconds_total\{owner="slurm:c:1"\} (?!0$)[\d.]+$/m, 'and so is what a job has computed');
($text) = call('ReleaseOwner', 'slurm:c:3', '{}');
like($text, qr/'PeakVram': <uint64 [34]\d{7}>/, 'and is in its totals') or diag($text);

# Under load the meter is killed, and restarted as by an upgrade: what is missed meanwhile is in the arbiter's counters.
my ($busy) = uuids((make_slice(wanted('slurm:c:5', 0, 64, $cap)))[0]);
within(20, sub { -S "$root/run/vgpu/containers/$busy/slice/governor.sock" });
my $load = command_as($user, (call('GetDoor', $busy))[0], "$build/guest/vk-compute --rounds=2 --size 65536");
my $looper = start('load', 'sh', '-c', "until [ -e $root/enough ]; do $load; done");
for my $signal (qw(KILL TERM KILL)) {
    ok(computes($busy), "a job computes; its meter gets $signal") or diag(slurp("$root/load.log"));
    kill_meter($signal);
    ok(computes($busy), 'it goes on without a meter');
    start_meter();
}
open my $enough, '>', "$root/enough" or die;
close $enough;
waitpid $looper, 0;
forget($looper);
my $counted = measured($busy);
($text) = output_of("$vgpuctl -o json report");
my ($reported) = $text =~ /"Uuid" : "$busy".*?"GpuSeconds" : ([\d.]+)/s;
cmp_ok($reported // 0, '<=', $counted / 1e9, 'no second is reported twice') or diag($text);
($text) = call('ReleaseOwner', 'slurm:c:5', '{}');
like($text, qr/'GpuTime': <uint64 $counted>/, 'and none of the job is lost') or diag($text);

my $before = $uuid;
kill_vgpud('KILL');
($text) = as($user, $door, "$fill 512");
like($text, qr/^has (?:56|64) MiB$/m, 'the size is held while vgpud is down');
start_vgpud();
($text) = make_slice(wanted('slurm:c:1', 0, 64, $cap));
is((uuids($text))[0], $before, 'the same call gives the same slice when vgpud was killed');
($text) = call('ReleaseOwner', 'slurm:c:1', '{}');
like($text, qr/'GpuTime': <uint64 [1-9]/, 'what it used is known at its end') or diag($text);
like($text, qr/'Slices': <uint32 1>/, 'the use at the end is that of one slice');
my ($used) = $text =~ /'GpuTime': <uint64 (\d+)>/;
kill_vgpud('KILL');
start_vgpud();
($text) = call('ReleaseOwner', 'slurm:c:1', '{}');
like($text, qr/'GpuTime': <uint64 $used>/, 'and is not counted again');
ok(!-e "$root/run/vgpu/owners/slurm:c:1" && !-e "$root/run/vgpu/containers/$uuid", 'nothing is left of it');

# Killed at many points while it makes eight.
my @eight = map { wanted('slurm:c:2', $_, 16) } 0 .. 7;
my $all = '[' . join(', ', @eight) . ']';
my ($none, $made, $delay) = (0, 0, 0.03);
my @broken;
for my $round (1 .. ($ENV{ROUNDS} // 16)) {
    my $caller = start('caller', 'gdbus', 'call', '--system', '-d', 'org.mdev_vgpu.Host1', '-o', '/org/mdev_vgpu/manager',
        '-m', 'org.mdev_vgpu.Host1.Manager.CreateSlices', $all);
    sleep $delay;
    kill_vgpud('KILL');
    waitpid $caller, 0;
    forget($caller);
    start_vgpud();
    ($text) = call('ListOwners');
    my $count = () = $text =~ /[0-9a-f]{8}-[0-9a-f-]{27}/g;
    $count == 0 ? $none++ : $count == 8 ? $made++ : push @broken, "$count of 8";
    # Towards the moment at which it is made.
    $delay *= $count ? 0.85 : 1.15;
    my @first = uuids((call('CreateSlices', $all))[0]);
    my @again = uuids((call('CreateSlices', $all))[0]);
    push @broken, "@first and @again" if @first != 8 || "@first" ne "@again";
    ($text) = call('ReleaseOwner', 'slurm:c:2', '{}');
    my @left = (glob("$root/run/vgpu/containers/*"), glob("$root/run/vgpu/owners/*"), glob("$root/run/cdi/*"));
    push @broken, "$text left: @left" if @left;
}
is("@broken", '', "killed while it makes eight: all or none ($made, $none), and nothing is left");
cmp_ok($made, '>', 0, 'some of the killed requests had made their slices');
cmp_ok($none, '>', 0, 'and some were not');

# What it costs beside a thousand. Not a bound that a busy machine can break: CPU time.
my $little = ", 'Class': <'best-effort'>";
for my $job (1 .. 16) {
    call('CreateSlices', '[' . join(', ', map { wanted("slurm:d:$job", $_, 1, $little) } 0 .. 63) . ']');
}
like((output_of("$vgpuctl slice list --no-headers | wc -l"))[0], qr/^1024$/m, 'there are 1,024 slices');
my $begin = cpu_ms();
make_slice(wanted("slurm:e:$_", 0, 1, $little)) for 1 .. 40;
my $create = (cpu_ms() - $begin) / 40;
my ($one) = uuids((make_slice(wanted('slurm:e:1', 0, 1, $little)))[0]);
$begin = cpu_ms();
call('GetDoor', $one) for 1 .. 40;
my $get = (cpu_ms() - $begin) / 40;
$begin = cpu_ms();
call('ReleaseOwner', "slurm:e:$_", '{}') for 1 .. 40;
my $end = (cpu_ms() - $begin) / 40;
diag(sprintf 'CPU of vgpud at 1,024 slices: CreateSlices %.1f ms, GetDoor %.1f ms, ReleaseOwner %.1f ms', $create, $get, $end);
cmp_ok($create, '<=', 10, 'a native slice costs at most 10 ms of CPU');
cmp_ok($get, '<=', 2, 'and its door 2 ms');

nothing_to_complain_of();
done_testing();
