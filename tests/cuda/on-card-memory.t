#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/cuda/on-card --memory runs through on the fake card, with small sizes: every step has its numbers, and memory that has
# moved is what it was. The goals are a card's, so they are not asked for here.
use strict;
use warnings;

use JSON::PP ();
use Test::More;

sub slurp { my ($file) = @_; local $/ = undef; open my $in, '<', $file or BAIL_OUT("$file: $!"); return <$in> }

my $file = 'build/on-card/result.json';
unlink $file;
is(system('tests/cuda/on-card', '--memory', '--seconds', 1), 0, 'it ends with no step that failed');
my $seen = JSON::PP::decode_json(slurp($file));
is_deeply([sort keys %{ $seen->{steps} }], [sort qw(facts turns busy offline undisturbed)], 'it has all steps');
for my $row (@{ $seen->{rows} }) {
    ok(defined $row->{seen} && (defined $row->{least} || defined $row->{most}), "$row->{row}: it has a number, and a goal");
    is($row->{seen}, 1, "$row->{row}: its memory is what it was") if $row->{row} =~ /sound$/;
}
for my $place ('turns unified', 'turns lock', 'busy unified', 'busy lock', 'offline kill') {
    my ($step, $name) = split / /, $place;
    is(ref $seen->{steps}{$step}{seen}{$name}, 'HASH', "$place: there is something to compare it with");
}
done_testing();
