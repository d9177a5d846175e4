# SPDX-License-Identifier: MIT
# The verdict on an ended step: green, red with reasons, or that the rig failed and not the tests.
package VGPU::Check::Verdict;

use strict;
use warnings;

use VGPU::Check::Plan;
use VGPU::Check::Step;

# Allowed skips (tests/skips): where, which file, and a regex for "NAME: REASON", which may have spaces.
sub allowed_skips {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    my @allowed;
    while (my $line = <$in>) {
        next if $line !~ /^[^#\s]/;
        chomp $line;
        my ($where, $file, $regex) = split ' ', $line, 3;
        die "$path:$.: WHERE FILE REGEX\n" if !defined $regex;
        push @allowed, [map({ VGPU::Check::Plan::glob_regex($_) } $where, $file), qr/$regex/];
    }
    return \@allowed;
}

sub is_allowed {
    my ($allowed, $where, $file, $text) = @_;
    return grep { $where =~ $_->[0] && $file =~ $_->[1] && $text =~ $_->[2] } @$allowed;
}

# Skips that are not allowed, as sentences.
sub forbidden_skips {
    my ($step, $allowed) = @_;
    my @faults;
    for my $result (@{ $step->{results} // [] }) {
        for my $skip (@{ $result->{skips} }) {
            my $text = "$skip->[0]: $skip->[1]";
            push @faults, "$result->{file} skipped what tests/skips does not allow: $text"
                if !is_allowed($allowed, $step->{where}, $result->{file}, $text);
        }
    }
    return @faults;
}

# What its test files' results by now say against the step, as sentences.
sub faults_of_results {
    my ($step, $allowed) = @_;
    return (forbidden_skips($step, $allowed), map { "$_->{file} is red" } grep { !$_->{ok} } @{ $step->{results} // [] });
}

# Sentences, each of which makes the ended step red. None if it is green, or if the rig failed: programs in the rig exit
# with that status only if nothing else is red.
sub faults {
    my ($step, $allowed) = @_;
    return forbidden_skips($step, $allowed) if $step->{status} == VGPU::Check::Step::RIG_FAILED && !$step->{hung};
    my @results = @{ $step->{results} // [] };
    my %ran = map { $_->{file} => 1 } @results;
    my @faults = faults_of_results($step, $allowed);
    push @faults, "it was ended after $step->{limit} s" if $step->{hung};
    push @faults, "$_ was not run" for grep { !$ran{$_} } @{ $step->{files} // [] };
    push @faults, 'no test file was run' if $step->{kind} ne 'build' && !@results;
    push @faults, "it ended with status $step->{status}" if $step->{status} && !@faults;
    return @faults;
}

# The lines of the step's output that explain why it is red: its red points with their comments, or a failed assertion
# of GLib's; of a test that died, its last lines; and the rig's state after it. If there is none of these, the last lines
# of all. $most: lines of a red point's comments.
sub excerpt {
    my ($step, $most) = @_;
    open my $in, '<', $step->log_file or return ();
    my (@said, @last, $follows, $told);
    while (my $line = <$in>) {
        if ($line =~ /^Dubious\b/) {
            push @said, splice @last, @last > 15 ? -15 : 0 if !$told;
            $told = 0;
        }
        push @last, $line;
        shift @last if @last > 20;
        $follows = 1 + ($most // 40) if $line =~ /^\s*not ok\b/ && $line !~ /# TODO/;
        # Test::More prints an empty line between a red point and its comments.
        $follows = 0 if $line !~ /^\s*(not ok|#|$)/;
        $follows = 1 if $line =~ /^ERROR:|^system tests: /;
        next if !$follows || $line !~ /\S/;
        $follows--;
        $told = 1;
        push @said, $line;
    }
    @said = @last if !@said;
    splice @said, 200 if @said > 200;
    return @said;
}

# The first red point and why, in a line: CI may show no more than the end.
sub first_reason {
    my ($point, @follow) = @_ ? @_ : return;
    my ($why) = grep { !/^\s*$|^\s*#\s+(?:Failed test|at .* line \d+\.)/ } @follow;
    ($point, $why) = map { s/^\s*(?:# )?|\s+$//gr } $point, $why // '';
    return "   the first: $point" . ($why eq '' ? '' : ": $why") . "\n";
}

# What an ended step that is red says last, in as many lines as CI shows. The more points are red, the fewer lines has each:
# what came after the first failure is often its consequence.
sub reasons {
    my ($step) = @_;
    my @said;
    for my $most (48, 24, 8) {
        @said = excerpt($step, $most);
        last if @said <= 60;
    }
    splice @said, 60 if @said > 60;
    my ($at) = grep { $said[$_] =~ /^\s*not ok\b/ } 0 .. $#said;
    my @first = defined $at ? first_reason(@said[$at .. $#said]) : ();
    return ((map { "   | $_" } @said), @first, (map { "   $step->{name}: $_\n" } @{ $step->{faults} }));
}

1;
