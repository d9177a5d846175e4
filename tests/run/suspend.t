#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpuctl slice suspend and resume, with all that does it: vgpud, vgpu-suspend, the arbiter and the CUDA door, over the fake
# card. A host with one GPU, which has NVIDIA's driver by its files. What counts is the card's memory, and whether the
# program goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use RunCuda;
use RunLive;
use Test::More;
use Time::HiRes 'sleep';

my $uuid = 'c0ffee00-0000-4000-8000-000000000001';
my $other = 'c0ffee00-0000-4000-8000-000000000002';

# systemd starts it outside of vgpud's sandbox: here without a systemd, from where it was built. The file "fails" has a step
# and the process with which it fails. There is none of an earlier vgpud to stop.
sub make_systemd {
    put('/bin/systemd-run', <<"END", 0755);
#!/bin/sh
while [ "\$1" != -- ]; do shift; done
shift 2
if [ -e "$root/fails" ]; then read -r name pid <"$root/fails"; export "FAKE_CUDA_FAIL_\$name=\$pid"; fi
mkdir -p "$root/run/vgpu-suspend"
RUNTIME_DIRECTORY="$root/run/vgpu-suspend" exec "$cuda/vgpu-suspend" "\$@"
END
    put('/bin/systemctl', "#!/bin/sh\nexit 5\n", 0755);
    return;
}

my $log = "$root/program.log";
sub goes_on {
    my $before = -s $log;
    return within(10, sub { -s $log > $before + 3 });
}

sub stands_still {
    sleep 0.1;
    my $before = -s $log;
    sleep 0.5;
    return -s $log == $before;
}

make_systemd();
start_card(1024);

my ($text, $status) = output_of("$vgpuctl slice create full --door native --uuid $uuid");
is($status, 0, 'a slice of the whole GPU') or diag($text, slurp("$root/vgpud.log"));
my $program;
{
    local $ENV{CLIENT_STAYS} = 'calls';
    $program = program('program', $uuid, "$cuda/client-container");
}
ok(within(20, sub { -e $log && slurp($log) =~ /pieces\n\./ }), 'a program is in it') or diag(slurp($log));
my $has = on_card();
is($has, 512, 'and has 512 MiB of the card');

# A step fails with the program: all is as before.
put('/fails', "CHECKPOINT $program\n");
($text, $status) = output_of("$vgpuctl slice suspend $uuid");
is($status, 1, 'if the driver refuses to suspend it, that fails');
like($text, qr/cannot suspend process $program/, 'and says which process it was') or diag(slurp("$root/vgpud.log"));
is(on_card(), $has, 'it has its memory');
ok(goes_on(), 'the program goes on after the first resume');
unlink "$root/fails";

($text, $status) = output_of("$vgpuctl slice suspend $uuid");
is($status, 0, 'a slice with a program of CUDA is suspended') or diag($text, slurp("$root/vgpud.log"));
is(on_card(), 0, 'it has nothing of the card');
ok(stands_still(), 'the suspended program stands still');
like((output_of("$vgpuctl slice show $uuid"))[0], qr/Suspended/, 'slice show says that the slice is suspended');

($text, $status) = output_of("$vgpuctl slice create half --door native --uuid $other");
is($status, 0, 'another slice has its room') or diag($text);
($text, $status) = output_of("$vgpuctl slice resume $uuid");
is($status, 7, 'meanwhile there is none for it') or diag($text);
ok(stands_still(), 'it still stands still');
kill_vgpud('KILL');
start_vgpud();
($text, $status) = output_of("$vgpuctl slice remove $other");
is($status, 0, 'the slice that took the memory is removed') or diag($text);

# A program outside of all slices has half of the card, with the driver alone: what is free is just too little beside it.
{
    local $ENV{LD_LIBRARY_PATH} = "$cuda/real";
    local $ENV{FAKE_CUDA_CGROUP} = '/outside';
    local $ENV{CLIENT_STAYS} = 'calls';
    my $outside = start('outside', "$cuda/client-container");
    ok(within(20, sub { on_card('/outside') == 512 }), 'a program of the host has half of the card') or diag(slurp("$root/outside.log"));
    ($text, $status) = output_of("$vgpuctl slice resume $uuid");
    is($status, 1, 'the slice is not brought back to a card without room');
    like($text, qr/GPU \Q$card\E has 512 MiB of free memory, and 527 MiB would come back to it/, 'and it says what is missing');
    ok(stands_still(), 'it still stands still');
    kill 'KILL', $outside;
    waitpid $outside, 0;
    forget($outside);
}
put('/fails', "RESTORE $program\n");
($text, $status) = output_of("$vgpuctl slice resume $uuid");
is($status, 1, 'if the driver cannot bring it back, that fails');
is(on_card(), 0, 'it still has nothing of the card');
unlink "$root/fails";
($text, $status) = output_of("$vgpuctl slice resume $uuid");
is($status, 0, 'it is resumed, by another vgpud') or diag($text, slurp("$root/vgpud.log"));
($text, $status) = output_of("$vgpuctl slice resume $uuid");
is($status, 0, 'once more, which changes nothing') or diag($text, slurp("$root/vgpud.log"));
is(on_card(), $has, 'it has all of its memory');
ok(goes_on(), 'the program goes on with all of its memory');

nothing_to_complain_of();
done_testing();
