#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Two programs that each have most of a card take turns, with all that does it: vgpud, vgpu-meter, the arbiter, the vault and the
# CUDA door, over the fake card. Each finds what it has written, whoever was on the card in between.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use RunCuda;
use RunLive;
use Test::More;

my @uuids = map { "c0ffee00-0000-4000-8000-00000000000$_" } 1, 2;
my @inputs;

# Of memory that moves, 208 MiB each, and 16 that are always there: 251 of the card's 256 are to be had.
sub create {
    my ($uuid, $name, @more) = @_;
    return output_of("$vgpuctl slice create --door native --name $name --uuid $uuid --class burstable --vram 224M @more");
}

sub start_program {
    my ($number) = @_;
    my $fifo = "$root/input$number";
    system('mkfifo', $fifo) == 0 or die "mkfifo\n";
    my $pid = program("program$number", $uuids[$number], 'sh', '-c', "exec $build/run/t-turns 208 <$fifo");
    open $inputs[$number], '>', $fifo or die "$fifo: $!\n";
    $inputs[$number]->autoflush(1);
    return $pid;
}

sub reaches {
    my ($number, $round) = @_;
    return within(60, sub { slurp("$root/program$number.log") =~ /^round $round$/m });
}

sub why { return map { slurp("$root/$_.log") } qw(program0 program1 arbiter vault vgpud) }

sub column {
    my ($number, $key) = @_;
    return (output_of("$vgpuctl slice show $uuids[$number] -o json"))[0] =~ /"$key" *: *(\d+)/ ? $1 >> 20 : -1;
}

# Its memory has content.
$ENV{FAKE_CUDA_CONTENT} = 1;
put('/etc/vgpu/vgpud.conf', "[metrics]\nlisten=unix:/run/vgpu/metrics\n[slices]\ndisplaced=1G\n");
start_card(256);
start_meter();
start('vault', "$build/governor/vgpu-vault", '--root', "$root");

my ($text, $status) = create($uuids[0], 'day', '--resident 240M');
isnt($status, 0, 'no more is resident than a slice has');
like($text, qr/240 MiB can't be resident of 224 MiB/, 'and it says so') or diag($text);
($text, $status) = create($uuids[0], 'day', '--resident 16M');
is($status, 0, 'a slice of most of the card, a part of which is always there') or diag($text, why());
($text, $status) = create($uuids[1], 'night', '--resident 32M');
isnt($status, 0, 'a second one that promises too much');
like($text, qr/another slice has 208 MiB that are not resident, and the resident memory of all slices would leave/, 'is refused with the reason')
    or diag($text);
($text, $status) = create($uuids[1], 'night', '--resident 16M');
is($status, 0, 'a second one of most of the card') or diag($text, why());

($text, $status) = output_of("$vgpuctl tenant set red --displaced 100M");
is($status, 0, 'a tenant may have so much of the host\'s memory') or diag($text);
($text, $status) = output_of("$vgpuctl slice create --door native --tenant red --class burstable --vram 124M --resident 8M");
isnt($status, 0, 'who would need more');
like($text, qr/tenant red would have 116 MiB of the host's memory for what moves, and may have 100 MiB/, 'is refused') or diag($text);

start_program(0);
ok(reaches(0, 0), 'the first program has its memory') or diag(why());
is(column(0, 'Displaced'), 0, 'all of it on the card');
start_program(1);
ok(reaches(1, 0), 'the second one gets as much, because the first is idle') or diag(why());
ok(within(20, sub { column(0, 'Displaced') >= 170 }), 'which is in the host\'s memory now') or diag(output_of("$vgpuctl slice show $uuids[0] -o json"), why());
for my $round (1 .. 3) {
    for my $number (0, 1) {
        print { $inputs[$number] } "\n";
        ok(reaches($number, $round), "in round $round, program $number finds what it has written") or diag(why());
    }
}
($text, $status) = output_of("$vgpuctl slice warm day");
is($status, 0, 'the idle one is warmed') or diag($text);
ok(within(20, sub { column(0, 'Displaced') == 0 }), 'and its memory comes back before it is used') or diag(why());
($text, $status) = output_of("$vgpuctl slice create --door native --name still --vram 1M --class burstable");
($text, $status) = output_of("$vgpuctl slice warm still");
isnt($status, 0, 'one that is always there needs none');
like($text, qr/all memory of slice \S+ is resident, so none of it is away/, 'and it is said') or diag($text);
like((output_of("$vgpuctl top --once"))[0], qr/RESIDENT +FLOOR +OUT +MOVED\/S +MEM WAIT S\/S/, 'top shows it');

nothing_to_complain_of();
done_testing();
