# SPDX-License-Identifier: MIT
#
# VGPU::OnCardMemory: the steps of tests/cuda/on-card --memory: services of nine tenths of the card each, whose memory moves; and
# beside them what others do: unified memory without a word more, an exclusive lock, and a kill. The goals are docs/memory.md's.
package VGPU::OnCardMemory;

use strict;
use warnings;

use List::Util qw(max min sum);
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);

use VGPU::OnCard;

# @opt: door, seconds, fake.
my %opt;
my ($total, %rate);

# What a slice is promised: more than a context has.
sub resident { return $opt{fake} ? 32 << 20 : 1 << 30 }
sub part { my ($tenths) = @_; return int($total * $tenths / 10) >> 21 << 21 }
sub in_time { my ($ready) = @_; return sprintf '%.3f', clock_gettime(CLOCK_MONOTONIC) + ($ready // ($opt{fake} ? 2 : 5)) }
sub slice_text { my ($vram, @more) = @_; return join '', "vram=$vram\n", 'resident=' . resident() . "\n", @more }

# Programs begin at @$at, and have MORE of "BUSY GAP SECONDS".
sub service { my ($slice, $kind, $bytes, $at, @more) = @_; return VGPU::OnCard::program($slice, "$opt{door}/card-service", $kind, $bytes, $at, @more) }
sub numbers { my ($job) = @_; return pairs(finish($job)) }

# Slices whose memory moves: an arbiter that lends the card, and the vault for what is displaced.
sub with_lent {
    my ($slices, $code) = @_;
    my $usable = $total - int $total / 50;
    return with_slices($slices, sub {
        my ($root) = @_;
        my $vault = start({}, 'build/governor/vgpu-vault', '--root', "$root");
        my $tries = 0;
        until (-S "$root/run/vgpu/vault.sock") { $tries++ < 1000 ? sleep 0.01 : die "vgpu-vault does not listen\n" }
        my $value = eval { $code->($root) };
        my $error = $@;
        end($vault);
        die $error if $error;
        return $value;
    }, "vram=$total\ncapacity=$usable\ndisplaced=" . 4 * $total . "\n");
}

# The card, and what its link can do: GiB a second.
sub facts {
    my $size = pairs(run(VGPU::OnCard::environment_of(undef), "$opt{door}/card-service", 'size'));
    $total = $size->{total} >> 21 << 21;
    %rate = map { ($_ => together($opt{seconds}, 3, [undef, $_])->[0]) } qw(up down);
    my $both = together($opt{seconds}, 4, [undef, 'up'], [undef, 'down']);
    return { %$size, %rate, both => sum(@$both) };
}

# Two that are used in turn, with so many seconds between one's end and the other's begin.
sub in_turn {
    my ($slices, $kind, $busy, $rest, $rounds, @lock) = @_;
    my ($at, $bytes) = (in_time(), part(9) - resident());
    my $period = 2 * ($busy + $rest);
    my @jobs = map { service($slices->[$_], $kind, $bytes, $at + $_ * $period / 2, $busy, $period - $busy, $rounds * $period - $period / 2, @lock) } 0, 1;
    return map { numbers($_) } @jobs;
}

sub seen_in_turn {
    my ($alone, $busy, $rounds, @seen) = @_;
    my $link = (part(9) - resident()) / (1 << 30) / min(values %rate);
    my $first = max(map { $_->{first} } @seen) - $alone->{job};
    return { first => $first, link => $link, 'first-of-link' => ($first - 0.1) / $link, work => sum(map { $_->{jobs} } @seen) * $alone->{job} / (2 * $rounds * $busy), sound => min(map { $_->{sound} } @seen) };
}

sub alone { my ($slice) = @_; return numbers(service($slice, 'own', part(9) - resident(), in_time(), $opt{seconds}, 0, $opt{seconds})) }
sub two { return { a => slice_text(part(9)), b => slice_text(part(9)) } }

sub turns {
    my ($busy, $rest, $rounds) = $opt{fake} ? (1.5, 3, 2) : (5 * $opt{seconds}, 4, 2);
    my $alone = alone(undef);
    my $lock = "/tmp/on-card-$$.lock";
    my %seen = (
        clean => with_lent(two(), sub { seen_in_turn($alone, $busy, $rounds, in_turn(['a', 'b'], 'own', $busy, $rest, $rounds)) }),
        dirty => with_lent(two(), sub { seen_in_turn($alone, $busy, $rounds, in_turn(['a', 'b'], 'own', $busy, 0, $rounds)) }),
        unified => with_slices({}, sub { seen_in_turn($alone, $busy, 1, in_turn([undef, undef], 'managed', $busy, 0, 1)) }),
        lock => with_slices({}, sub { seen_in_turn($alone, $busy, $rounds, in_turn([undef, undef], 'managed', $busy, 0, $rounds, $lock)) }),
    );
    unlink $lock;
    return \%seen;
}

# Both always work.
sub busy {
    my $seconds = $opt{fake} ? 6 : 16 * $opt{seconds};
    my $alone = alone(undef);
    my $lock = "/tmp/on-card-$$.lock";
    my $both = sub {
        my ($slices, $kind, $seconds, $quantum, @lock) = @_;
        my ($at, $bytes) = (in_time(), part(9) - resident());
        my @seen = map { numbers($_) } map { service($_, $kind, $bytes, $at, $quantum, 0, $seconds, @lock) } @$slices;
        return { sum => sum(map { $_->{jobs} } @seen) * $alone->{job} / $seconds, share => 100 * $seen[0]{jobs} / sum(map { $_->{jobs} } @seen), sound => min(map { $_->{sound} } @seen) };
    };
    my %seen = (
        ours => with_lent(two(), sub { $both->(['a', 'b'], 'own', $seconds, $seconds) }),
        unified => with_slices({}, sub { $both->([undef, undef], 'managed', $seconds / 2, $seconds / 2) }),
        lock => with_slices({}, sub { $both->([undef, undef], 'managed', $seconds / 2, $seconds / 8, $lock) }),
    );
    unlink $lock;
    return \%seen;
}

# Offline work has six tenths of the card, and online work asks for five: the first is idle and was copied ahead, idle, or works.
sub offline {
    my $gib = part(5) / (1 << 30);
    my $ready = $opt{fake} ? 2 : 8;
    my $case = sub {
        my ($slices, $busy, $after, $kill) = @_;
        my ($at, $long) = (in_time(), $busy + $after + $ready + 5);
        my $offline = service($slices->[0], 'own', part(6), $at, $busy, $long, $long);
        my $begin = $at + $busy + $after;
        my $online = service($slices->[1], 'own', part(5), $begin, 0.2, 0, 0.2);
        if ($kill) {
            sleep max(0, $begin - clock_gettime(CLOCK_MONOTONIC));
            end($offline);
        }
        my $seen = numbers($online);
        return { 'ms-per-gib' => 1000 * $seen->{allocated} / $gib, sound => min($seen->{sound}, $kill ? 1 : numbers($offline)->{sound}) };
    };
    my $slices = { a => slice_text(part(7), "best-effort=true\n", "guaranteed=false\n"), b => slice_text(part(6), "priority=1\n") };
    my %seen = map { my ($name, $busy, $after) = @$_; ($name => with_lent($slices, sub { $case->(['a', 'b'], $busy, $after) })) }
        ['clean', 1, $ready], ['idle', $ready, 0.2], ['works', 2 * $ready, -$ready];
    return { %seen, kill => with_slices({}, sub { $case->([undef, undef], 2 * $ready, -$ready, 1) }) };
}

# A slice that is alone, and one that has no more than its promise beside two that take turns.
sub undisturbed {
    my ($lent, $fixed) = map { my $text = $_; with_lent({ a => $text }, sub { alone('a') }) } slice_text(part(9)), 'vram=' . part(9) . "\n";
    my $small = 512 << 20;
    my %slices = (a => slice_text(part(7)), b => slice_text(part(7)));
    my $promised = "vram=" . ($opt{fake} ? 192 << 20 : $small) . "\n";
    my $without = with_lent({ c => $promised }, sub { online('c', 'online', 2 * $opt{seconds}) });
    my $beside = with_lent({ %slices, c => $promised }, sub {
        my ($at, $seconds) = (in_time(), 2 * $opt{seconds} + 4);
        my @others = map { service($_, 'own', part(6), $at, $seconds, 0, $seconds) } qw(a b);
        my $seen = online('c', 'online', 2 * $opt{seconds});
        $seen->{sound} = min(map { numbers($_)->{sound} } @others);
        return $seen;
    });
    return { alone => $fixed->{job} / $lent->{job}, p99 => $beside->{p99} / $without->{p99}, sound => min($beside->{sound}, $lent->{sound}) };
}

# In their order: name, what it returns, and what is expected of it.
sub steps {
    %opt = @_;
    # Of bursts of a minute 0.94; an exchange takes as long of shorter ones.
    my $burst = 5 * $opt{seconds};
    return (
        [facts => \&facts],
        [turns => \&turns, { 'clean.first-of-link' => [undef, 1.15], 'dirty.first-of-link' => [undef, 1.35], 'clean.work' => [1 - 3.6 / $burst, undef],
            map { ("$_.sound" => [1, 1]) } qw(clean dirty) }],
        [busy => \&busy, { 'ours.sum' => [0.88, undef], 'ours.share' => [47, 53], 'ours.sound' => [1, 1] }],
        [offline => \&offline, { 'clean.ms-per-gib' => [undef, 8], 'idle.ms-per-gib' => [undef, 25], 'works.ms-per-gib' => [undef, 25],
            map { ("$_.sound" => [1, 1]) } qw(clean idle works) }],
        [undisturbed => \&undisturbed, { alone => [0.995, undef], p99 => [undef, 1.02], sound => [1, 1] }],
    );
}

1;
