#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpu-meter beside vgpud: each is killed and started again, and the other goes on. The host is RunLive's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use RunLive;
use Test::More;

sub slices { return (output_of("$vgpuctl slice list"))[0] }
sub uuid_of { return $_[0] =~ /([0-9a-f]{8}-[0-9a-f-]{27})/ ? $1 : '' }

start_host('1G');

my ($text, $status) = output_of("$vgpuctl slice create --vram 64M --door native --name kept");
is($status, 0, 'a slice is made') or diag($text);
my $kept = uuid_of(slices());
ok(within(20, sub { metrics() =~ /vgpu_slice_info\{slice="$kept"/ }), 'the meter hears of it') or diag(slurp("$root/meter.log"));
is((output_of("$vgpuctl report"))[1], 0, 'and has a report of it');

# It stores what it has counted since the last minute when it ends.
sleep 1;
kill_meter('TERM');
($text, $status) = output_of("$vgpuctl report");
isnt($status, 0, 'without the meter there is no report');
like($text, qr/vgpu-meter does not answer .*"systemctl status vgpu-meter" shows why/s, 'and the error names it');
is((output_of("$vgpuctl run --vram 64M -- true"))[1], 0, 'programs get their slices nevertheless');
isnt((output_of("$vgpuctl gpu clear $gpu"))[1], 0, 'what only the meter knows is refused');
($text, $status) = output_of("$vgpuctl slice create --vram 64M --door native --name unseen");
is($status, 0, 'slices are made') or diag($text);

start_meter();
like(metrics(), qr/vgpu_slice_info\{[^}]*name="unseen"/, 'a meter that starts knows all of them');
ok(within(20, sub { (output_of("$vgpuctl report"))[0] =~ /$kept/ }), 'and what was counted before');
kill_meter('KILL');
start_meter();
is((output_of("$vgpuctl gpu clear $gpu"))[1], 0, 'an operator clears a GPU\'s findings');

kill_vgpud('KILL');
ok(within(20, sub { metrics() =~ /^vgpu_agent_up 0$/m }), 'metrics answer without vgpud, and say so');
like(metrics(), qr/vgpu_slice_info\{[^}]*name="kept"/, 'with what it had');
start_vgpud();
($text, $status) = output_of("$vgpuctl slice remove kept");
is($status, 0, 'vgpud is there again') or diag($text);
ok(within(20, sub { metrics() !~ /vgpu_slice_info\{[^}]*name="kept"/ }), 'and the meter follows it') or diag(slurp("$root/meter.log"));
like(metrics(), qr/^vgpu_agent_up 1$/m, 'the metrics say that vgpud runs again');
like((output_of("$vgpuctl report"))[0], qr/$kept/, 'what it used is reported still');

nothing_to_complain_of();
done_testing();
