#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# The rig as an instrument: its verbs, its statuses, and what it says when something fails. Two small
# L1s run side by side (RIG_NAME and RIG_NAME-b), and one is killed by a panic.

use strict;
use warnings;

use Cwd qw(realpath);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;
use Time::HiRes qw(time);

use constant RIG_FAILED => 75;

my $dir = dirname(realpath($0));
my $name = $ENV{RIG_NAME} // 'check-rig';
my $scratch = tempdir(CLEANUP => 1);
my $rig = "$dir/rig";

# rig(WORDS…): status, stdout and stderr. The last word may be a hash with the rig's name.
sub rig {
    my (@words) = @_;
    my %how = ref $words[-1] ? %{pop @words} : ();
    local $ENV{RIG_NAME} = $how{name} // $name;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null' or die;
        open STDOUT, '>', "$scratch/out" or die;
        open STDERR, '>', "$scratch/err" or die;
        exec $how{rig} // $rig, @words or die "exec: $!\n";
    }
    waitpid $pid, 0;
    my $status = $? >> 8;
    return ($status, map { slurp("$scratch/$_") } qw(out err));
}

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or return '';
    local $/ = undef;
    return scalar <$in> // '';
}

sub spill {
    my ($file, $text) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} $text;
    close $out or die "$file: $!\n";
    return $file;
}

sub status_of {
    my ($which) = @_;
    my ($status, $out) = rig('status', '--json');
    is($status, 0, 'status --json');
    return decode_json($out)->{rigs}{$which};
}

# fault_by(FIRST, SECOND): what the rig says of two recorded looks.
sub fault_by { return rig('fault', '--recorded', @_) }

# with(FILE, SUB): a copy of a recorded look, changed by SUB.
sub with {
    my ($file, $change) = @_;
    local $_ = slurp("$dir/recorded/$file");
    my $before = $_;
    $change->();
    die "nothing changed in $file\n" if $_ eq $before;
    return spill("$scratch/changed-$file", $_);
}

subtest 'called wrongly, or with no rig' => sub {
    for my $words (['nonsense'], ['up', '--kernel', '9.9'], ['up', '--accel', 'magic'], ['run'],
        ['run', '--timeout', 'soon', 'true'], ['status', '--xml'], ['up', '--image', 'woody']) {
        is((rig(@$words))[0], 2, "rig @$words");
    }
    for my $words (['run', 'true'], ['ssh-command'], ['monitor', 'info status'], ['logs', "$scratch/none"],
        ['guest', 'a', 'run', 'true']) {
        my $begin = time;
        my ($status, undef, $err) = rig(@$words, { name => "$name-none" });
        is($status, RIG_FAILED, "rig @$words");
        like($err, qr/$name-none/, 'it says which rig');
        cmp_ok(time - $begin, '<', 5, 'at once');
    }
    is((rig('fault', { name => "$name-none" }))[0], 1, 'no rig, no fault');
};

# in_parts(SCRIPT, APT): what SCRIPT prints with the parts of the rig loaded, and this script in place of apt-get.
sub in_parts {
    my ($script, $apt) = @_;
    mkdir $_ for "$scratch/bin", map { "$scratch/parts$_" } '', '/log';
    chmod 0755, spill("$scratch/bin/apt-get", "#!/bin/sh\n" . ($apt // 'exit 1') . "\n");
    local $ENV{PATH} = "$scratch/bin:$ENV{PATH}";
    local @ENV{qw(RIG_DIR RIG_NAME MDEV_VGPU_CACHE)} = ($dir, $name, "$scratch/parts");
    open my $out, '-|', 'bash', '-euo', 'pipefail', '-c', "for part in $dir/lib/*.sh; do . \$part; done; $script" or die;
    local $/ = undef;
    return <$out> // '';
}

# The README's reader must not be the first who tries it.
subtest 'a machine whose KVM can nest' => sub {
    my $choice = 'kvm_works() { :; }; UP_ACCEL=%s; accel_choose; echo $UP_ACCEL';
    is(in_parts(sprintf $choice, 'auto'), "tcg\n", 'emulates');
    is(in_parts(sprintf $choice, 'kvm'), "kvm\n", 'unless it is asked not to');
};

subtest 'where packages come from' => sub {
    my $sources = 'MIRROR_KEYRING=/dev/null; debian_sources trixie trixie-security 2>/dev/null';
    my $lines = sub { join '', map { "deb [signed-by=/dev/null] $_[0]/$$_[0] $$_[1] main\n" } ['debian', 'trixie'], ['debian-security', 'trixie-security'] };
    my $targets = "printf 'Debian|http://m/debian\nDebian-Security|http://m/debian-security\n'";
    is(in_parts($sources, $targets), $lines->('http://m'), 'from the mirror of this machine');
    is(in_parts($sources, "case \$1 in update) touch $scratch/updated ;; *) [ ! -e $scratch/updated ] || $targets ;; esac"),
        $lines->('http://m'), 'whose lists are fetched if there are none');
    is(in_parts($sources, "echo 'Ubuntu|http://m/ubuntu'"), $lines->('http://deb.debian.org'), 'from Debian, on an Ubuntu');
    in_parts('index_update trixie 2>/dev/null', "[ \$1 != indextargets ] || $targets");
    ok(!-e "$scratch/parts/apt/trixie/asked", 'a mirror that never answered is asked again');
};

subtest 'the trees of the demo' => sub {
    for my $list (qw(l1 l2)) {
        my ($all, $small) = map { { map { /^(\w\S*)/ ? ($1 => 1) : () } split /\n/, slurp("$dir/packages/$_") } } "$list.txt", "small/$list.txt";
        is_deeply([grep { !$all->{$_} } sort keys %$small], [], "$list has nothing that the tests' tree lacks");
    }
    local $ENV{RIG_SMALL} = 1;
    my $small = 'for l in small whole; do mkdir -p $CACHE/l1-$l/tree; [ $l = whole ] || touch $CACHE/l1-$l/small; list_of l1; done';
    like(in_parts('list_of l1'), qr{/small/l1\.txt$}, 'are small');
    like(in_parts($small), qr{/small/l1\.txt\n\S*/packages/l1\.txt$}, 'unless those of the tests are there');
    delete local $ENV{RIG_SMALL};
    like(in_parts('rm -r $CACHE/l1-whole; list_of l1'), qr{/packages/l1\.txt$}, 'and only for the demo');
};

# apt-get can install one at a time.
subtest 'what this machine lacks' => sub {
    my $apt = "case \$1 in update) mkdir $scratch/apt-runs || exit 1; sleep 0.5; rmdir $scratch/apt-runs ;; install) touch $scratch/tool ;; esac";
    is(in_parts("rm -f $scratch/tool; outer_packages $scratch/tool:a-package 2>&1 & outer_packages $scratch/tool:a-package 2>&1; wait", $apt)
        =~ s/.*waiting.*\n//r, "rig: installing on this machine: a-package\n", 'is installed once, by two parts of the rig');
};

# A rig that is being made, or taken down: its process lives, and its port is not there yet, or not any more.
subtest 'status beside half a rig' => sub {
    local $ENV{MDEV_VGPU_CACHE} = "$scratch/cache";
    mkdir $_ for map { "$scratch/cache$_" } '', '/run', '/run/half';
    my ($start) = slurp("/proc/$$/stat") =~ /.*\) (.*)/s;
    spill("$scratch/cache/run/half/pid", "$$ " . (split ' ', $start)[19] . "\n");
    my ($status, $out) = rig('status', '--json');
    is($status, 0, 'status --json');
    is(eval { decode_json($out)->{rigs}{half}{state} } // $@, 'dead', 'it is dead, and that is JSON');
    ($status, $out) = rig('status');
    is($status, 0, 'status');
    like($out, qr/^rig half: dead/m, 'for people, too');
};

subtest 'the fault, by recorded looks' => sub {
    my @faulty = map { "$dir/recorded/fault-$_" } 1, 2;
    my ($status, $out) = fault_by(@faulty);
    is($status, 0, 'proven');
    like($out, qr/^processor 1 .* vector 0xec in service/, 'which processor, and how');
    is((fault_by(map { "$dir/recorded/healthy-$_" } 1, 2))[0], 1, 'a healthy rig');
    is((fault_by($faulty[0], "$dir/recorded/healthy-2"))[0], 1, 'gone at the second look');
    is((fault_by("$dir/recorded/healthy-1", $faulty[1]))[0], 1, 'there at the second look only');
    my @near = (
        ['the processor runs', sub { s/HLT=1/HLT=0/g }],
        ['interrupts are off', sub { s/RFL=00000206/RFL=00000006/ }],
        ['nothing is pending', sub { s/^IRR\t 236.*/IRR\t (none)/m }],
        ['nothing is in service', sub { s/^ISR\t 236.*/ISR\t (none)/m }],
        ['another vector is in service at the second look', sub { s/^ISR\t 236.*/ISR\t 253 /m }],
        ['what is pending is of a higher class', sub { s/^IRR\t 236.*/IRR\t 251 /m }],
    );
    is((fault_by($faulty[0], with('fault-2', $_->[1])))[0], 1, $_->[0]) for @near;
    is((fault_by($faulty[0], with('fault-2', sub { s/^IRR\t 236/IRR\t 48(level) 236/m })))[0], 0,
        'others pending beside it');
    my @network = map { with($_, sub { s/^ISR\t 236.*/ISR\t 49 /m; s/^IRR\t 236.*/IRR\t 49 /m }) } qw(fault-1 fault-2);
    is((fault_by(@network))[0], 0, 'another vector than the timer\'s');
};

# A copy of the rig with one of its shims made for another QEMU.
subtest 'a shim that does not fit' => sub {
    my %wrong = (
        svm => ['svm-shim.c', sub { s/"helper_vmrun"/"helper_vmrun_of_tomorrow"/ }],
        vring => ['vring-shim.c', sub { s/"address_space_stb_cached_slow"/"nothing_like_that"/ }],
        version => ['shim.sh', sub { s/^SHIMS_QEMU=.*/SHIMS_QEMU=9.9/m }],
    );
    for my $which (sort keys %wrong) {
        my ($file, $change) = @{$wrong{$which}};
        my $copy = "$scratch/$which/tests";
        system('mkdir', '-p', $copy) == 0 && system('cp', '-a', $dir, "$copy/rig") == 0 or die;
        local $_ = slurp("$dir/lib/$file");
        $change->();
        spill("$copy/rig/lib/$file", $_);
        my ($status, undef, $err) =
            rig('up', '--gpu', 'none', '--accel', 'tcg', { rig => "$copy/rig/rig", name => "$name-shim" });
        is($status, RIG_FAILED, "$which: the start ends");
        like($err, $which eq 'version' ? qr/the shims are for QEMU 9\.9/ : qr/$which shim: it does not fit/,
            "$which: with a sentence");
        ok(!status_of("$name-shim"), "$which: no rig is left");
    }
};

my ($up, undef, $said) = rig('up', '--gpu', 'none', '--memory', '1G');
is($up, 0, 'a rig is up') or BAIL_OUT($said);
is((rig('up', '--gpu', 'none', '--memory', '1G', { name => "$name-b" }))[0], 0, 'another one beside it');

subtest 'two rigs' => sub {
    for my $one ($name, "$name-b") {
        is((rig('run', '--', 'sh', '-c', "echo $one >/run/name", { name => $one }))[0], 0, "$one runs a command");
    }
    is((rig('run', 'cat', '/run/name'))[1], "$name\n", 'each has its own L1');
    my $state = status_of($name);
    is($state->{state}, 'up', 'up');
    is($state->{kernel}, 'trixie', 'the kernel by its suite');
    is($state->{release} . "\n", (rig('run', 'uname', '-r'))[1], 'its release is what runs');
    like($state->{accel}, qr/^(?:tcg|kvm)$/, "accelerator: $state->{accel} ($state->{accel_why})");
    my $cpuinfo = (rig('run', 'cat', '/proc/cpuinfo'))[1];
    is($cpuinfo =~ /TCG/ ? 'tcg' : 'kvm', $state->{accel}, 'which is so');
    is((rig('down', { name => "$name-b" }))[0], 0, 'one goes');
    is(status_of("$name-b"), undef, 'and leaves nothing');
    is((rig('run', 'true'))[0], 0, 'the other one stays');
};

subtest 'commands' => sub {
    my ($status, $out, $err) = rig('run', '--', 'sh', '-c', 'echo "$1"; echo b >&2; exit 7', 'sh', q{a 'b" $c});
    is_deeply([$status, $out, $err], [7, qq{a 'b" \$c\n}, "b\n"], 'status, words and both outputs come back');
    is((rig('run', '--', 'sh', '-c', 'exit 125'))[0], 125, 'a status of podman is the command\'s own');
    is((rig('run', '--', 'sh', '-c', 'exit 255'))[0], 255, 'and so is one of ssh');
    my $begin = time;
    ($status, undef, $err) = rig('run', '--timeout', 2, '--', 'sleep', 77);
    is($status, 124, 'a limit');
    cmp_ok(time - $begin, '<', 15, 'is kept');
    like($err, qr/not done after 2 s/, 'and said');
    is((rig('run', 'pgrep', '-f', '^sleep 77'))[0], 1, 'the command is gone in L1');
    is((rig('run', '--timeout', 60, 'true'))[0], 0, 'within its limit');
    my $ssh = (rig('ssh-command'))[1];
    chomp $ssh;
    is(`$ssh 'echo "a  b"; exit 3'` . ($? >> 8), "a  b\n3", 'ssh-command');
    is((rig('ssh-command', 'nobody'))[0], RIG_FAILED, 'not of a guest that is not there');
    is((rig('guest', 'a', 'up', '--image', 'sid'))[0], RIG_FAILED, 'no guest of an image that L1 has not');
    like(slurp("$scratch/err"), qr/rig up --image sid/, 'which says what to do');
};

subtest 'logs, and no fault' => sub {
    my ($status, $out, $err) = rig('fault');
    is_deeply([$status, $out, $err], [1, '', ''], 'a healthy rig');
    is((rig('logs', "$scratch/logs"))[0], 0, 'logs');
    ok(-s "$scratch/logs/$_", $_) for qw(console.log dmesg monitor-1 monitor-2 qemu.args options);
    is((fault_by(map { "$scratch/logs/monitor-$_" } 1, 2))[0], 1, 'whose monitor output can be judged');
};

subtest 'L1 does not answer' => sub {
    my ($pid) = `pgrep -o -f '^qemu-system-x86_64 -name rig-$name '` =~ /^(\d+)$/ or die;
    rig('monitor', 'stop');
    is((rig('logs', "$scratch/silent"))[0], 0, 'logs of an L1 that stands still');
    like(slurp("$scratch/silent/state"), qr/^processor 0 of L1 (?:is halted|runs) at [0-9a-f]+, interrupts .*; vectors in service/m,
        'what its processors did is in its state');
    rig('monitor', 'cont');
    kill STOP => $pid;
    is((rig('logs', "$scratch/stopped"))[0], 0, 'logs of a QEMU that stands still');
    kill CONT => $pid;
    like(slurp("$scratch/stopped/state"), qr/^QEMU's monitor: QEMU does not answer; .*main thread:\n\S+: state T/m, 'that is said');
    is((rig('run', '--timeout', 60, 'true'))[0], 0, 'it goes on');
};

subtest 'a panic' => sub {
    my ($status, undef, $err) = rig('run', '--timeout', 60, '--', 'sh', '-c',
        'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 50');
    is($status, RIG_FAILED, 'the command does not come back');
    like($err, qr/its kernel died: Kernel panic/, 'with the reason');
    my $state = status_of($name);
    is($state->{state}, 'dead', 'dead');
    like($state->{said}, qr/Kernel panic - not syncing: sysrq/, 'it says of what');
    my $begin = time;
    is((rig('fault'))[0], 1, 'that is no fault of the rig');
    is((rig($_, 'x'))[0], RIG_FAILED, $_) for qw(run monitor);
    cmp_ok(time - $begin, '<', 10, 'nothing hangs');
    is((rig('logs', "$scratch/dead"))[0], 0, 'logs of a dead rig');
    like(slurp("$scratch/dead/console.log"), qr/Kernel panic/, 'with its console');
    like(slurp("$scratch/dead/state"), qr/dead: Kernel panic/, 'and its state');
};

subtest 'a kernel that dies while it boots' => sub {
    rig('down');
    my ($status, undef, $err) = rig('up', '--gpu', 'none', '--memory', '1G', '--append', 'rdinit=/nothing root=/dev/none');
    is($status, RIG_FAILED, 'the start fails');
    like($err, qr/L1's kernel died: .*Kernel panic/, 'with the panic');
    unlike($err, qr/timer/, 'and nothing else');
    is(status_of($name), undef, 'no rig is left');
};

subtest 'a kernel that never says that it is up' => sub {
    local $ENV{RIG_BOOT_LIMIT} = 20;
    # It reads the console, where nobody ever types.
    my ($status, undef, $err) = rig('up', '--gpu', 'none', '--memory', '1G', '--append', 'rig.init=/bin/cat');
    is($status, RIG_FAILED, 'the start fails');
    like($err, qr/no sign of life after 20 s/, 'after its limit');
    unlike($err, qr/the rig, not in the tests/, 'and the monitor does not blame the rig');
    ok(-s "/$1/monitor-1", 'monitor output is kept') if $err =~ m{log: /(\S+)/console\.log};
    is(status_of($name), undef, 'no rig is left');
};

done_testing();

END {
    my $status = $?;
    rig('down', { name => $_ }) for $name, "$name-b", "$name-shim";
    $? = $status;
}
