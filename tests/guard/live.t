#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The real vgpu-guard on lavapipe: Mesa's own client computes through its socket, alone, beside others, and beside
# hostile ones; a process that dies affects no other, and leaves nothing behind. `make check-guard`, part of `make
# unit`.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use IO::Socket::UNIX;
use Test::More;
use Time::HiRes 'sleep';

# Of all processes below it and their threads: how often they slept. Not of the thread by which virglrenderer shows a
# ring's client every 3 s that it is alive: Mesa asks for it.
sub switches {
    my %below = below($_[0]);
    my $count = 0;
    for my $file (map { glob "/proc/$_/task/*/status" } keys %below) {
        open my $status, '<', $file or next;
        my $text = join '', readline $status;
        $count += $1 if $text !~ /^Name:\tvkr-ringmon/ && $text =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    }
    return $count;
}

my $guard = start_guard();
sleep 0.5;
my $descriptors = descriptors($guard->{pid});
my $job = compute('one', '--rounds=5', split ' ', $small);
is(finish($job, 100), 0, 'Mesa computes through the socket') or diag(output($job), output($guard));
like(output($job), qr/5 rounds .* verified on Virtio-GPU Venus/, 'its results are right, and Venus\'');
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');
my $cached = cached();
ok($cached, 'but compiled shaders for the next one');
is(finish(compute('again', '--rounds=1', split ' ', $small), 100), 0, 'the next program finds the compiled shaders');
is(cached(), $cached, 'and compiles no others');
ok(within(60, sub { !cached() }), 'they are gone when nobody has come for some time');

# As if it did nothing: its session and its render worker do not wake up either.
$job = computing('idle');
kill 'STOP', $job->{pid};
sleep 18;
my $sleeps = switches($guard->{pid});
sleep 12;
is(switches($guard->{pid}), $sleeps, 'the processes of an idle client do not wake up');
kill 'CONT', $job->{pid};
ok(goes_on($job), 'and go on with it');
stop($job);
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

my @jobs = map { compute("job$_", "--seed=$_", '--rounds=3', split ' ', $small) } 1 .. 4;
is(join(' ', map { finish($_, 100) } @jobs), '0 0 0 0', 'four compute at once');
ok(nothing_left($guard, $descriptors), 'they leave nothing behind');

$job = computing('worker-killed');
kill 'KILL', worker($guard->{pid});
isnt(finish($job, 60), -1, 'a client whose render worker is killed ends');
isnt($job->{status}, 0, 'and not as if all was well');
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

$job = computing('session-killed');
my %below = below($guard->{pid});
kill 'KILL', grep { $below{$_} eq 'vgpu-guard' } keys %below;
isnt(finish($job, 60), -1, 'a client whose session is killed ends');
isnt($job->{status}, 0, 'and not as if all was well');
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

$job = computing('client-killed');
stop($job);
ok(nothing_left($guard, $descriptors), 'a client that is killed leaves nothing behind');

$job = computing('worker-hangs');
kill 'STOP', worker($guard->{pid});
stop($job);
ok(nothing_left($guard, $descriptors), 'nor does one whose render worker hangs');

# A client that has requested memory of a worker that hangs: its session waits for that, and does not see it
# disconnect.
sub waiting_for_worker {
    my ($between) = @_;
    my $client = IO::Socket::UNIX->new($socket) or die "$socket: $!\n";
    my $blob = pack 'L<8', 6, 18, 2, 1, 4096, 0, 0, 0;
    $client->syswrite(pack('L<2a4L<3', 4, 8, 'perl', 1, 17, 4) . $blob);
    $client->sysread(my $answer, 12) == 12 or die "no answer\n";
    my $worker = worker($guard->{pid});
    kill 'STOP', $worker;
    $between->($worker);
    $client->syswrite($blob);
    sleep 0.5;
    return $client->close;
}

waiting_for_worker(sub { });
ok(nothing_left($guard, $descriptors), 'nor does one that waits for such a worker');

waiting_for_worker(sub { kill 'KILL', `ps -o ppid= -p $_[0]` =~ /(\d+)/ });
ok(nothing_left($guard, $descriptors), 'nor does one whose worker has lost its render server, too');

# Its fence is behind work that never ends.
my $lost = start('lost', { VTEST_SOCKET_NAME => $socket }, 'build/guard/t-worker-dies');
ok(within(20, sub { output($lost) =~ /^pending$/m || ended($lost) }), 'a client waits for a fence');
kill 'KILL', worker($guard->{pid});
is(finish($lost, 60), 0, 'when its render worker is killed, the wait hangs up, and its ring says why') or diag(output($lost));
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

# Descriptors whose end takes seconds.
my $lingering = start('lingering', { VTEST_SOCKET_NAME => $socket }, 'build/guard/t-lingering', $guard->{pid});
is(finish($lingering, 120), 0, 'the guard does not wait for what clients send along') or diag(output($lingering));
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

my $asleep = start('asleep', { VTEST_SOCKET_NAME => $socket }, 'build/guard/t-asleep');
is(finish($asleep, 60), 0, 'a render worker that sleeps with commands in its ring is woken') or diag(output($asleep));
like(output($guard), qr/slept with commands in a ring, and is woken/, 'and that is said');
ok(nothing_left($guard, $descriptors), 'it leaves nothing behind');

my $witness = computing('witness');
my $hostile = start('hostile', { VTEST_SOCKET_NAME => $socket }, 'build/guard/t-hostile');
is(finish($hostile, 300), 0, 'the hostile clients come to their end') or diag(output($hostile));
ok(goes_on($witness), 'another one has computed all the time');
unlike(output($witness), qr/FAIL/, "the other client's results were right beside hostile ones");
is(scalar(() = output($guard) =~ /signal/g), 1, 'of all sessions the one that was killed here ended by a signal')
    or diag(output($guard));

kill 'KILL', $guard->{pid};
finish($guard, 5);
isnt(finish($witness, 60), -1, 'a client whose guard is killed ends');
isnt($witness->{status}, 0, 'and not as if all was well');

$guard = start_guard();
$job = compute('again', '--rounds=1', split ' ', $small);
is(finish($job, 100), 0, 'the next guard serves the next client');
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'it ends when it is told to');

# A process for the next client is kept started.
$guard = start_guard();
my $spare = spare($guard);
ok($spare, 'a process with a render server waits for the next client');
$job = computing('first');
ok({ below($guard->{pid}) }->{$spare // 0}, 'it serves the next one');
my $next = spare($guard);
isnt($next, $spare, 'and another one waits');
kill 'KILL', $next;
is(finish(compute('second', '--rounds=1', split ' ', $small), 100), 0, 'without that a client is served, too');
ok(goes_on($job), 'beside the first one');
stop($job);
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'the guard ends when it is told to');

# With a keeper, as a slice's guard has, though without an arbiter.
$guard = start_guard('--setenv=VGPU_GOVERNOR=1');
my $hoard = start('hoard', { VTEST_SOCKET_NAME => $socket }, 'build/guard/t-hoard', '--shared', 256);
is(finish($hoard, 60), 0, 'shared memory that clients keep after they have left is empty') or diag(output($hoard), output($guard));
my $threads = client('threads', {}, 'build/guest/vk-threads', '--rounds=100');
is(finish($threads, 100), 0, 'threads that make a pipeline and end, whose rings\' memory is given back')
    or diag(output($threads), output($guard));
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'the guard ends when it is told to');

# What an owned worker leaves behind: each process makes the next one, and ends.
$guard = start_guard('--setenv=LD_PRELOAD=' . `pwd` =~ s/\n//r . '/build/guard/chain.so');
$descriptors = descriptors($guard->{pid});
my $client = IO::Socket::UNIX->new($socket) or die "$socket: $!\n";
ok(within(10, sub { output($guard) =~ /^chain begins$/m }), 'a render server leaves a chain of processes behind');
$client->close;
ok(nothing_left($guard, $descriptors), 'what is left of the client is found and removed');
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'the guard ends when it is told to');

done_testing();
