#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/check itself: what makes a run red, which tests a file requires, and what a plan must name.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Path qw(make_path);
use File::Temp;
use Test::More;
use VGPU::Check::Docs;
use VGPU::Check::Plan;
use VGPU::Check::Run;
use VGPU::Check::Step;
use VGPU::Check::Verdict;

my $dir = File::Temp->newdir;

sub write_file {
    my ($name, $text) = @_;
    make_path("$dir/$name" =~ s{/[^/]+$}{}r);
    open my $out, '>', "$dir/$name" or die "$name: $!\n";
    print {$out} $text;
    close $out or die "$name: $!\n";
    return "$dir/$name";
}

# The verdict on a step that ended so.
sub faults {
    my (%step) = @_;
    my $allowed = VGPU::Check::Verdict::allowed_skips(write_file('skips', "# a comment\n6.12 t-* no moon\ntree ** .\n"));
    return VGPU::Check::Verdict::faults({ kind => 'unit', where => '6.12', status => 0, limit => 5, %step }, $allowed);
}

sub result { my ($file, %more) = @_; return { file => $file, ok => 1, skips => [], %more } }

is_deeply([faults(results => [result('t-a')])], [], 'all files green: green');
is_deeply([faults(results => [result('t-a', ok => 0)])], ['t-a is red'], 'a red file is red, whatever the status');
is_deeply([faults(results => [result('t-a')], files => ['t-a', 't-b'])], ['t-b was not run'], 'a file that was not run is red');
is_deeply([faults(results => [])], ['no test file was run'], 'nothing run is red');
is_deeply([faults(results => [result('t-a', ok => 0)], status => 75)], [], 'where the rig failed no test is to blame');
is_deeply([faults(results => [result('t-a')], status => 2)], ['it ended with status 2'], 'a status without a red file is red');
is_deeply([faults(results => [result('t-a')], hung => 1)], ['it was ended after 5 s'], 'a step that hangs is red');
is_deeply([faults(results => [result('t-a', skips => [['moon', 'no moon']])])], [], 'a skip that is allowed');
is(scalar faults(results => [result('t-a', skips => [['sun', 'no sun']])]), 1, 'a skip that is not is red');
is(scalar faults(results => [result('x-a', skips => [['moon', 'no moon']])]), 1, 'nor is one of another file');
is(scalar faults(where => '6.1', results => [result('t-a', skips => [['moon', 'no moon']])]), 1, 'nor one on another kernel');

# An output as tests/prove --merge -v and tests/system/check print it.
my @red = ("ok 1 - fine\n", "# all well\n", "not ok 2 - bad\n", "\n", "#   Failed test 'bad'\n", map({ "# line $_\n" } 1 .. 9),
    "ok 3\n", "not ok 4 - not yet # TODO x\n", "not ok 5 - worse\n", "\n", "# why\n", "1..5\n", "Dubious, test returned 2\n",
    "system tests: 10-a is red\n", "system tests: L1 did not answer\n");
write_file('red.log', join '', @red);
is(join('', VGPU::Check::Verdict::excerpt(bless({ dir => $dir, name => 'red' }, 'VGPU::Check::Step'), 3)),
    join('', @red[2, 4 .. 6, 16, 18, 21, 22]), 'red points with the first lines of their comments, and the rig\'s state');

# The reasons for a step with so many red points of 50 lines each.
sub reasons {
    my ($points) = @_;
    write_file('red.log', join '', map { ("not ok $_\n", map { "# line $_\n" } 1 .. 50) } 1 .. $points);
    return VGPU::Check::Verdict::reasons(bless { dir => $dir, name => 'red', faults => ['x is red'] }, 'VGPU::Check::Step');
}

is(scalar(() = reasons(1)), 51, 'a red point that is alone is told at length');
is(scalar(() = reasons(3)), 29, 'three have to be short');

sub plan_of {
    my ($plan, $map) = @_;
    write_file('tests/plan', $plan);
    write_file('tests/map', $map // '');
    write_file('tests/system/10-a.t', '');
    return VGPU::Check::Plan::read_plan("$dir");
}

sub names { return join ' ', map { $_->{name} } @_ }

my $plan = plan_of("unit gate 1 5\ndriver:6.1 - 1 5\nsystem:10-a gate 2 5\n",
    "a/** unit\na/*.[ch] driver\ndocs/** -\ntests/system/*.t system:%\n"
    . "otherwise b/** shard:1\notherwise ** shard:2\n");
is(names($plan->gate), 'unit system:10-a', 'the gate');
is(names($plan->shard(1)), 'unit driver:6.1', 'a shard');
is(names($plan->asked_for('a/b/c.c')), 'unit', '** goes into folders');
is(names($plan->asked_for('a/b.c')), 'unit driver:6.1', 'all lines that fit count');
is(names($plan->asked_for('a/b.o')), 'unit', 'one of some letters');
is(names($plan->asked_for('docs/x.md')), '', 'a file that asks for none');
is(names($plan->asked_for('tests/system/10-a.t')), 'system:10-a', 'a test asks for itself');
is(names($plan->asked_for('unheard/of')), 'system:10-a', 'a path that no line fits asks for a shard');
is(names($plan->asked_for('b/of')), 'unit driver:6.1', 'the first that fits');
ok(!eval { plan_of("unit gate 1 5\n") }, 'a test file that the plan does not name');
like($@, qr/does not name system:10-a/, 'a test file that the plan does not name is an error');
ok(!eval { plan_of("system:10-a gate 1 5\nsystem:11-b - 1 5\n") }, 'a name without a file');
like($@, qr/names what is not there: system:11-b/, 'a name of the plan without a file is an error');

# What is beyond the gate, cut into parts: each day has one, and each test its day.
my $beyond = plan_of("unit gate 1 60\nsystem:10-a - 1 50\ndriver:6.1 - 2 60\ndriver:6.12 - 2 40\nfleet-long - 3 500\n");
my @turns = map { [$beyond->turn(100, $_)] } 0 .. 2;
is_deeply([map { names(@{ $_->[0] }) } @turns], ['system:10-a', 'driver:6.1 driver:6.12', 'system:10-a'], 'the part whose turn it is');
is($turns[0][1], 2, 'there are two parts');
is(names(@{ $turns[0][2] }), 'fleet-long', 'a test that is longer than a part has no turn, and is named');
is_deeply([$beyond->turn(10, 5)]->[0], [], 'without time there is none');

# The shards of check-all, by the plan's own seconds.
my %minutes;
for my $test (@{ VGPU::Check::Plan::read_plan("$FindBin::Bin/..")->{tests} }) {
    my $lane = VGPU::Check::Step::lane($test->{name} =~ s/:.*//r);
    $minutes{$_} += $test->{seconds} / 60 for map { "shard $test->{shard}, $_" } $lane eq 'alone' ? qw(system tree) : $lane;
}
is_deeply({ map { $minutes{$_} > 80 ? ($_ => $minutes{$_}) : () } keys %minutes }, {}, 'no shard takes more than 80 minutes');

# Each name of the plan is a step that can be run.
my @unknown = grep { !VGPU::Check::Step::is_known($_) } map { $_->{name} =~ s/:.*//r } @{ VGPU::Check::Plan::read_plan("$FindBin::Bin/..")->{tests} };
is_deeply(\@unknown, [], 'the plan names steps that there are');

# Steps as they run, with this test's own commands.
sub run_step {
    my ($script, %more) = @_;
    my $step = bless { name => 'x', kind => 'unit', where => 'tree', limit => 20, tests => [], command => ['sh', '-c', $script], %more },
        'VGPU::Check::Step';
    my $run = bless { dir => "$dir", began => time, seconds => delete $more{seconds}, done => [], running => [], not_run => [],
        red => 0, rig_failed => 0, allowed => [] }, 'VGPU::Check::Run';
    open my $kept, '>&', \*STDOUT or die;
    open STDOUT, '>', "$dir/said" or die;
    $run->lanes([$step]);
    $run->summary;
    open STDOUT, '>&', $kept or die;
    open my $in, '<', "$dir/said" or die;
    return ($run->status, join('', <$in>), $run->not_run);
}

my $good = 'echo \'{"file":"t","ok":true,"points":1,"seconds":1,"skips":[]}\' >>$VGPU_RESULTS; ';
my ($status, $said) = run_step($good);
is($status, 0, 'a green step');
like($said, qr/ok +1 s  x: t, 1 points/, 'says what its file came to');
($status) = run_step("$good exit 75");
is($status, 75, 'the rig failed');
($status, $said) = run_step("$good echo 'not ok 3 - b'; echo '# why'; exit 1");
is($status, 1, 'a red step');
like($said, qr/\| not ok 3 - b\n   \| # why/, 'a red step prints its red point and why');
($status, $said) = run_step("$good echo; echo '**'; echo 'ERROR:a.c:9: b'; echo Dubious; for i in 1 2 3 4 5 6; do echo \$i; done; exit 1");
like($said, qr/status 1\n   \| ERROR:a.c:9: b\n   all of it/, 'or shows the assertion that failed');
($status, $said) = run_step("$good echo 'not ok 3 - b'; echo '# why'; exit 1");
like($said, qr/slowest.*   \| not ok 3 - b\n   \| # why\n   the first: not ok 3 - b: why\n   x: it ended with status 1\n\z/s, 'and again at the end');
write_file('red.log', "ok 1\nnot ok 2 - bad\n#   Failed test 'bad'\n#   at /x/Test.pm line 49.\n# nothing was seen: 0 KiB\n# more\n");
like(join('', VGPU::Check::Verdict::reasons(bless { dir => $dir, name => 'red', faults => ['x is red'] }, 'VGPU::Check::Step')),
    qr/   the first: not ok 2 - bad: nothing was seen: 0 KiB\n   red: x is red\n\z/, 'with the reason itself in the last lines');
($status, $said) = run_step("$good seq 30; echo waited in vain; echo Dubious, test returned 2; seq 31 60; exit 1");
like($said, qr/status 1\n   \| 17\n.*\| 30\n   \| waited in vain\n   all of it/s, 'or the last lines of a test that died');
($status, $said) = run_step('sleep 60', limit => 1);
is($status, 1, 'a step past its limit is ended');
like($said, qr/ended after 1 s/, 'a step past its limit says that it was ended');

# When the time of a run is up, what it found counts, and the rest is named.
my @pair = ({ name => 'system:a' }, { name => 'system:b' });
my @ends = ('echo \'{"file":"tests/system/a.t","ok":', ',"points":1,"seconds":1,"skips":[]}\' >>$VGPU_RESULTS; '
    . 'trap "echo \'{\"file\":\"tests/system/b.t\",\"ok\":false,\"points\":1,\"seconds\":1,\"skips\":[]}\' >>\$VGPU_RESULTS; exit 1" TERM; '
    . 'while :; do sleep 0.2; done');
($status, $said, my @not_run) = run_step("$ends[0]true$ends[1]", seconds => 2, kind => 'system', tests => \@pair);
is($status, 0, 'a step that is stopped because the time is up');
like($said, qr/stopped after \d s, because the time is up/, 'is said to be');
is(names(@not_run), 'system:b', 'and the test that was running counts as not run');
($status) = run_step("$ends[0]false$ends[1]", seconds => 2, kind => 'system', tests => \@pair);
is($status, 1, 'what was red before is red');

# How tests/unit/run ends a test that never would. An aborted test once left its D-Bus daemon behind, and prove waited for
# it until the whole step was ended.
sub unit_run {
    my ($script, $seconds) = @_;
    my $said = `UNIT_SECONDS=$seconds $FindBin::Bin/unit/run sh -c '$script' 2>&1`;
    return ($? >> 8, $said);
}
($status, $said) = unit_run('echo Bail out!; exit 3', 60);
is("$status $said", "3 # Bail out!\n", 'a unit test\'s status, and its order to run no other');
($status, $said) = unit_run('echo ok 1; exec sleep 60', 1);
is($status, 1, 'a unit test that hangs is ended');
like($said, qr/^ok 1\n\nnot ok - sh still runs after 1 s\n# process \d+: sleep 60$/m, 'and named, with what it runs');
($status, $said) = unit_run('sleep 60 & echo ok 1', 5);
is($status, 1, 'so is what a unit test leaves behind');
like($said, qr/^not ok - sh has ended \(0\), but processes of it hold its output\n# process \d+: sleep 60$/m, 'what a unit test leaves behind is named');

# Faults that once left tests out, while the run still counted as green.
for my $gone (qw(STEPS CHECK_MINUTES)) {
    my $said = `$gone=0 $FindBin::Bin/check gate 2>&1`;
    isnt($?, 0, "$gone is refused");
    like($said, qr/$gone is not known any more/, '$gone is refused with a sentence');
}

# What documents name. docs/upstream.md is about files of other projects, and pages of reasons and results name others' functions.
write_file('docs/other.md', "## One heading, `x`\n");
write_file('docs/a.md', "`system/10-a.t`, `gone/b.c`, `c.h`, `*-a.t`, [x](other.md#one-heading-x), [y](other.md#two), [z](gone.md)\n");
is_deeply([VGPU::Check::Docs::faults("$dir", ['docs/a.md'], ['c.h'])],
    ['docs/a.md names gone/b.c: no such file', 'docs/a.md links to other.md#two: no such heading',
        'docs/a.md links to gone.md: no such file'], 'a document that names files that do not exist');
write_file('a.c', "int there(void)\n{\n");
write_file('docs/b.md', "`there()`, `gone()`, `foreign()`\n");
is_deeply([VGPU::Check::Docs::function_faults("$dir", ['docs/b.md'], ['foreign'])], ['docs/b.md names gone(): no such function'],
    'a document that names a function that does not exist');
{
    chdir "$FindBin::Bin/.." or die;
    my @docs = grep { $_ ne 'docs/upstream.md' } grep { /\.md$/ } VGPU::Check::Docs::paths('.');
    is_deeply([VGPU::Check::Docs::faults('.', \@docs, ['vn_renderer_vtest.c'])], [], 'documents name only files that exist');
    my @ours = grep { !m{/(?:WHY|RESULTS)\b} } @docs;
    my @foreign = qw(assert hva_to_pfn_remapped nvmlDeviceSetMemoryLimits_v1 sysfs_notify vfio_display_probe);
    is_deeply([VGPU::Check::Docs::function_faults('.', \@ours, \@foreign)], [], 'and functions');
}

# What a guide prints of a file that is installed.
{
    my ($pod) = map { s/^#.*\n//mgr =~ s/\A\n+//r } VGPU::Check::Docs::read_text("$FindBin::Bin/../fleet/kubernetes/conf/pod-cuda.yaml");
    like(VGPU::Check::Docs::read_text("$FindBin::Bin/../docs/kubernetes.md"), qr/^```yaml\n\Q$pod\E```$/m, 'the pod with CUDA is the one that is installed');
}

done_testing();
