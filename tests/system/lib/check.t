#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/system/check with a fake rig: red stays red, nothing is run twice, a file that was not run is red, and only a
# proven fault of the rig counts as the rig's.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $top = abs_path("$FindBin::Bin/../../..");
my $dir = tempdir(CLEANUP => 1);

sub put {
    my ($name, $text) = @_;
    open my $out, '>', "$dir/$name" or die "$dir/$name: $!\n";
    print {$out} $text;
    close $out or die "$dir/$name: $!\n";
    chmod 0755, "$dir/$name";
    return "$dir/$name";
}

# Verbs are recorded; L1's answer to every question is the address of a GPU, until there is a file named silent. A file
# named like a verb makes that verb's status.
put('ssh', "#!/bin/sh\ncat >/dev/null\n[ ! -e $dir/silent ] || exit 255\necho 0000:01:00.0 GPU\n");
put('rig', <<"SH");
#!/bin/sh
shift 2
echo "\$1" >>$dir/verbs
case \$1 in
ssh-command) echo $dir/ssh l1; exit ;;
logs) mkdir -p "\$2" && echo traces >"\$2/console.log" && printf 'up\\nL1 did not answer\\n' >"\$2/state" ;;
fault) echo "processor 1 gets no timer interrupts" ;;
esac
[ ! -e "$dir/status.\$1" ] || exit "\$(cat $dir/status.\$1)"
SH
put('green.t', "print qq(1..1\\nok 1\\n);\n");
put('red.t', "open my \$o, '>>', '$dir/ran-red'; print {\$o} 'x'; print qq(1..1\\nnot ok 1\\n);\n");
put('dies.t', "print qq(ok 1\\n); die qq(in the middle\\n);\n");
put('silent.t', <<"PL");
use lib '$top/tests/system/lib';
use VGPU::Test;
point('L1 goes', sub { open my \$o, '>', '$dir/silent'; die "it is gone\\n" });
point('another', sub { return '' });
done_testing();
PL
put('short.t', "print qq(1..2\\nok 1\\n);\n");

# Runs check on these: its status, the last line of its output, and all of it.
sub check {
    my (%status) = (%{ shift @_ });
    my @files = map { "$dir/$_.t" } @_;
    unlink "$dir/verbs", glob "$dir/status.*";
    put("status.$_", $status{$_}) for keys %status;
    local @ENV{qw(VGPU_RIG VGPU_LOGS RIG_NAME)} = ("$dir/rig", "$dir/logs", 'none');
    delete local @ENV{qw(KEEP VGPU_RESULTS)};
    my $said = qx{cd $top && tests/system/check @files 2>&1};
    return ($? >> 8, (split /\n/, $said)[-1], $said);
}

sub verbs {
    my ($verb) = @_;
    open my $in, '<', "$dir/verbs" or return 0;
    return scalar grep { $_ eq "$verb\n" } <$in>;
}

my ($status, $last) = check({ fault => 1 }, qw(green));
is($status, 0, 'a green file');
like($last, qr/1 files, all green/, 'is said to be green');

($status, $last, my $said) = check({ fault => 1 }, qw(red green));
is($status, 1, 'a red file and a green one');
like($last, qr/2 files; 1 red: red\.t$/, 'the red one is named');
is(-s "$dir/ran-red", 1, 'it was run once');
is(verbs('up'), 2, 'the next file gets a new rig');
ok(-s "$dir/logs/red/console.log", 'traces are kept');
like($said, qr/^system tests: red is red; traces.*\nsystem tests: up\nsystem tests: L1 did not answer$/m, 'and the rig\'s state is said');

($status, $last) = check({ fault => 1 }, qw(dies));
is($status, 1, 'a file that dies is red');
($status, $last) = check({ fault => 1 }, qw(short));
is($status, 1, 'a file that says less than it planned is red');
($status, $last, $said) = check({ fault => 1 }, qw(silent));
unlink "$dir/silent";
is($status, 1, 'a file in which L1 falls silent is red');
like($said, qr/^not ok 1 - L1 goes.*^# it is gone.*L1 does not answer: no further point is run/ms, 'it says so');
unlike($said, qr/another/, 'and ends');
($status, $last) = check({ fault => 1 }, qw(missing));
is($status, 1, 'a file that is not there is red');

($status, $last) = check({ fault => 0 }, qw(red green));
is($status, 75, 'the rig failed in one, proven');
like($last, qr/1 in which THE RIG FAILED: red\.t/, 'that is said');
is(-s "$dir/ran-red", 2, 'that file was run once, too');
($status, $last) = check({ fault => 0 }, qw(dies green));
is($status, 75, 'the other file was run all the same');

($status, $last) = check({ fault => 1, up => 1 }, qw(green red dies short));
is($status, 1, 'a rig that does not come up');
like($last, qr/2 red: green\.t red\.t; 2 NOT RUN: dies\.t short\.t/, 'what was not run is named');
is(verbs('up'), 2, 'it was tried for two files');

($status, $last) = check({ fault => 1, build => 1 }, qw(green));
is($status, 1, 'a build that fails');
like($last, qr/1 NOT RUN: green\.t/, 'and the file was not run');

# make host on that rig: L1 and its guests answer whatever is asked with this, or not at all.
put('ssh', <<"SH");
#!/bin/sh
cat >/dev/null
[ -e $dir/here ] || exit 255
printf '0000:01:00.0 GPU\nIOMMU group 1: 0000:01:00.0\n  x-vgpu-half\nthere\n'
SH
put('rig', <<"SH");
#!/bin/sh
shift 2
echo "\$1" >>$dir/verbs
case \$1 in
ssh-command) echo $dir/ssh l1 ;;
up) touch $dir/here ;;
down) rm -f $dir/here ;;
esac
[ ! -e "$dir/status.\$1" ] || exit "\$(cat $dir/status.\$1)"
SH

unlink glob "$dir/status.*";

sub host {
    unlink "$dir/verbs";
    local @ENV{qw(VGPU_RIG RIG_NAME)} = ("$dir/rig", 'none');
    my $out = qx{cd $top && tests/system/demo host 2>&1};
    return ($? >> 8, $out);
}
($status, $said) = host();
is($status, 0, 'make host') or diag($said);
like($said, qr/^ 1  Start the GPU host/, 'says nothing before its steps');
is(verbs('up') . verbs('build') . verbs('prepare') . verbs('shell'), '1111', 'builds all, starts the host, and opens a shell');
ok(-e "$dir/here", 'which leaves it up');
($status) = host();
is(verbs('up') . verbs('shell'), '01', 'the next one opens another shell in it');
unlink "$dir/here";
put('status.build', 1);
($status, $said) = host();
is($status, 1, 'a build that fails');
is(verbs('shell') . (-e "$dir/here" ? 'up' : 'down'), '0down', 'leaves no host');

done_testing();
