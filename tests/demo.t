#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# make demo and make host, the README's commands, from the root of the checkout.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/system/lib";
use JSON::PP;
use Test::More;
use VGPU::Command;

$ENV{RIG_NAME} //= 'demo';
my $rig = "tests/rig/rig --name $ENV{RIG_NAME}";
my $limit = 3600;

sub make {
    my ($goal, $stdin) = @_;
    my $job = VGPU::Command::start(['make', '--no-print-directory', $goal], stdin => $stdin // '');
    my $said = $job->wait($limit, fail => 1);
    print map { "# $_\n" } split /\n/, $said;
    return ($VGPU::Command::status, $said);
}

sub steps_of {
    my ($dir) = @_;
    open my $in, '<', "build/$dir/report.json" or return [];
    local $/ = undef;
    return JSON::PP->new->decode(<$in>)->{steps};
}

my ($status, $said) = make('host', "vgpuctl attach red --type half && echo it has one\n");
is($status, 0, 'make host');
like($said, qr/^it has one$/m, 'its shell is on a host with VMs');
($status, $said) = make('host', "vgpuctl slice list\n");
is($status, 0, 'make host again');
like($said, qr/^\S+ .* vm .* red /m, 'comes back to it');
is(system("$rig down"), 0, 'it ends');

($status) = make('demo');
is($status, 0, 'make demo');
my $steps = steps_of('demo');
is(scalar(grep { $_->{ok} } @$steps), 21, 'all of its steps');
open my $readme, '<', 'README.md' or die "README.md: $!\n";
my @shown = grep { /^\d\d  / } <$readme>;
chomp @shown;
is_deeply(\@shown, [map { sprintf '%2d  %s', $_, $steps->[$_ - 1]{name} // '' } map { /^(\d+)/ } @shown], 'those that the README shows');
done_testing();

END { my $code = $?; system("$rig down >/dev/null 2>&1"); $? = $code }
