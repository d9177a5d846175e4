# SPDX-License-Identifier: MIT
# The list of tests, which of them are the gate, which shard of check-all runs them (tests/plan), and which of them a
# change of a file requires (tests/map).
#
# A test's name is STEP or STEP:WHICH, such as unit, driver:6.12 or system:10-attach.
package VGPU::Check::Plan;

use strict;
use warnings;

# Lines of a file as lists of words; comments and empty lines are skipped.
sub table {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    return map { s/#.*//r =~ /\S/ ? [split ' ', s/#.*//r] : () } <$in>;
}

# Reads the plan, and dies if it does not name exactly the existing test files.
sub read_plan {
    my ($top) = @_;
    my $self = bless { tests => [], by_name => {}, top => $top }, __PACKAGE__;
    for my $row (table("$top/tests/plan")) {
        my ($name, $gate, $shard, $seconds) = @$row;
        die "tests/plan: $name: NAME gate|- SHARD SECONDS\n"
            if @$row != 4 || $gate !~ /^(gate|-)$/ || "$shard $seconds" !~ /^\d \d+$/;
        my $test = { name => $name, gate => $gate eq 'gate', shard => $shard, seconds => $seconds };
        push @{ $self->{tests} }, $test;
        $self->{by_name}{$name} = $test;
    }
    $self->must_fit('system', map { m{([^/]+)\.t$} } glob "$top/tests/system/*.t");
    $self->must_fit('packages', map { m{([^/]+)\.t$} } glob "$top/tests/packages/*.t");
    return $self;
}

sub must_fit {
    my ($self, $step, @files) = @_;
    my %there = map { ("$step:$_" => 1) } @files;
    my @unplanned = grep { !$self->{by_name}{$_} } sort keys %there;
    my @missing = grep { /^\Q$step\E:/ && !$there{$_} } map { $_->{name} } @{ $self->{tests} };
    die "tests/plan does not name @unplanned\n" if @unplanned;
    die "tests/plan names what is not there: @missing\n" if @missing;
    return;
}

sub gate { my ($self) = @_; return grep { $_->{gate} } @{ $self->{tests} } }

# One shard; without a number, all of them.
sub shard {
    my ($self, $number) = @_;
    return grep { !$number || $_->{shard} == $number } @{ $self->{tests} };
}

# What is beyond the gate and has a shard, in parts of $seconds at most: the one whose turn it is on that day, how many there
# are, and the tests that are longer than a part.
sub turn {
    my ($self, $seconds, $day) = @_;
    my (@parts, @never);
    my $left = 0;
    for my $test (grep { !$_->{gate} } @{ $self->{tests} }) {
        if ($test->{seconds} > $seconds) { push @never, $test; next }
        if ($test->{seconds} > $left) { push @parts, []; $left = $seconds }
        push @{ $parts[-1] }, $test;
        $left -= $test->{seconds};
    }
    return (@parts ? $parts[$day % @parts] : [], scalar @parts, \@never);
}

# A test, or all whose names begin so: "driver" is all of driver's.
sub named {
    my ($self, $name) = @_;
    my @found = grep { $_->{name} eq $name || $_->{name} =~ /^\Q$name\E:/ } @{ $self->{tests} };
    @found = $self->shard($1) if $name =~ /^shard:(\d)$/;
    die "no test is called $name; tests/check plan lists them\n" if !@found;
    return @found;
}

# * is anything within a folder, ** anything at all, [ch] one of these letters.
sub glob_regex {
    my ($glob) = @_;
    my %meaning = ('**' => '.*', '*' => '[^/]*');
    my $regex = join '', map { $meaning{$_} // (/^\[\w+\]$/ ? $_ : quotemeta) } split /(\*\*|\*|\[\w+\])/, $glob;
    return qr/^$regex$/;
}

# Names of the tests that a change of these files requires, in the plan's order.
sub asked_for {
    my ($self, @files) = @_;
    my (@map, @otherwise);
    for my $row (table("$self->{top}/tests/map")) {
        my ($list, @row) = $row->[0] eq 'otherwise' ? (\@otherwise, @$row[1 .. $#$row]) : (\@map, @$row);
        push @$list, [glob_regex(shift @row), @row];
    }
    my %wanted;
    for my $file (@files) {
        my @matching = grep { $file =~ $_->[0] } @map;
        @matching = (grep { $file =~ $_->[0] } @otherwise)[0] // die "tests/map says nothing of $file\n" if !@matching;
        my ($base) = $file =~ m{([^/]+?)(?:\.[^./]*)?$};
        my @names = map { s/%/$base/r } map { @$_[1 .. $#$_] } @matching;
        $wanted{ $_->{name} } = 1 for map { $self->named($_) } grep { $_ ne '-' } @names;
    }
    return grep { $wanted{ $_->{name} } } @{ $self->{tests} };
}

1;
