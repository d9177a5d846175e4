# SPDX-License-Identifier: MIT
# Runs steps: lanes side by side, the steps of a lane one after the other. Prints each test file's result as it ends,
# the reasons for red results, and at the end the times (times.json).
package VGPU::Check::Run;

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP;
use VGPU::Check::Step;
use VGPU::Check::Verdict;

# $dir: for logs, results and times.json; files of an earlier run are removed. $seconds: after so many, what still runs
# is stopped; undef: never.
sub new {
    my ($class, $dir, $seconds) = @_;
    remove_tree($dir);
    make_path($dir);
    return bless {
        dir => $dir, began => time, seconds => $seconds, done => [], running => [], not_run => [], red => 0, rig_failed => 0,
        allowed => VGPU::Check::Verdict::allowed_skips('tests/skips'),
    }, $class;
}

sub say_line { printf "%s\n", sprintf shift, @_; return }

sub time_is_up { my ($self) = @_; return defined $self->{seconds} && time - $self->{began} >= $self->{seconds} }

# @lanes: lists of steps. Runs all of them, even if some are red, unless the time is up.
sub lanes {
    my ($self, @lanes) = @_;
    my @waiting = map { [@$_] } grep { @$_ } @lanes;
    my @now = map { undef } @waiting;
    while (grep { defined } @now or grep { @$_ } @waiting) {
        if ($self->time_is_up) {
            $self->step_is_cut($_) for grep { defined } @now;
            push @{ $self->{not_run} }, map { @{ $_->{tests} } } map { @$_ } @waiting;
            return;
        }
        for my $lane (0 .. $#waiting) {
            $now[$lane] = $self->step_begins(shift @{ $waiting[$lane] }) if !$now[$lane] && @{ $waiting[$lane] };
            next if !$now[$lane];
            my $ended = $now[$lane]->ended;
            $self->tell_results($now[$lane]);
            next if !$ended;
            $self->step_ends($now[$lane]);
            $now[$lane] = undef;
        }
        select undef, undef, undef, 0.3;
    }
    return;
}

sub step_begins {
    my ($self, $step) = @_;
    say_line('== %s: %s', $step->{name}, join ' ', @{ $step->{command} });
    $step->begin($self->{dir});
    push @{ $self->{running} }, $step;
    return $step;
}

sub tell_results {
    my ($self, $step) = @_;
    for my $result ($step->new_results) {
        say_line('   %-3s %5d s  %s: %s, %d points%s', $result->{ok} ? 'ok' : 'RED', $result->{seconds}, $step->{name},
            $result->{file}, $result->{points}, @{ $result->{skips} } ? sprintf(', %d skipped', scalar @{ $result->{skips} }) : '');
    }
    return;
}

sub step_ends {
    my ($self, $step) = @_;
    my @faults = VGPU::Check::Verdict::faults($step, $self->{allowed});
    $step->{faults} = \@faults;
    $step->{verdict} = @faults ? 'RED' : $step->{status} ? 'RIG' : 'ok';
    $self->{red}++ if @faults;
    $self->{rig_failed}++ if $step->{status} == VGPU::Check::Step::RIG_FAILED;
    say_line('== %s: %s after %d s', $step->{name}, $step->{verdict}, $step->{seconds});
    say_line('   the rig failed, not the tests; what it left is under build/') if $step->{status} == VGPU::Check::Step::RIG_FAILED;
    if (@faults) {
        say_line('   %s', $_) for @faults;
        print map { "   | $_" } VGPU::Check::Verdict::excerpt($step);
        say_line('   all of it: %s', $step->log_file);
    }
    push @{ $self->{done} }, $step;
    return;
}

# The time is up. Results so far count; what the stop does to the running test does not.
sub step_is_cut {
    my ($self, $step) = @_;
    $self->tell_results($step);
    my @faults = VGPU::Check::Verdict::faults_of_results($step, $self->{allowed});
    push @{ $self->{not_run} }, $step->tests_without_results;
    $step->stop;
    $step->{seconds} //= time - $step->{began};
    $step->{faults} = \@faults;
    $step->{verdict} = @faults ? 'RED' : 'CUT';
    $self->{red}++ if @faults;
    say_line('== %s: stopped after %d s, because the time is up', $step->{name}, $step->{seconds});
    push @{ $self->{done} }, $step;
    return;
}

# Tests that were not run to their end, because the time was up.
sub not_run { my ($self) = @_; return @{ $self->{not_run} } }

sub stop { my ($self) = @_; $_->stop for @{ $self->{running} }; return }

# Where the time went, by step and by file; the ten slowest files are shown. The reasons for red are last, because the
# end of the output may be all that is shown.
sub summary {
    my ($self) = @_;
    my $all = time - $self->{began};
    my (@files, @steps);
    for my $step (@{ $self->{done} }) {
        push @steps, { step => $step->{name}, seconds => $step->{seconds}, verdict => $step->{verdict} };
        push @files, map { { step => $step->{name}, %$_ } } @{ $step->{results} // [] };
    }
    $self->write_file('times.json', JSON::PP->new->canonical->pretty->encode({ seconds => $all, steps => \@steps, files => \@files }));
    say_line('');
    say_line('== summary: %d min %02d s, %d of %d steps red, the rig failed %d times', $all / 60, $all % 60, $self->{red},
        scalar @steps, $self->{rig_failed});
    say_line('   %-4s %5d s  %s', $_->{verdict}, $_->{seconds}, $_->{step}) for @steps;
    say_line('   the slowest files:');
    my @slow = sort { $b->{seconds} <=> $a->{seconds} } @files;
    say_line('        %5d s  %s: %s', @$_{qw(seconds step file)}) for splice @slow, 0, 10;
    my @reasons = map { VGPU::Check::Verdict::reasons($_) } grep { @{ $_->{faults} } } @{ $self->{done} };
    $self->write_file('red', @reasons);
    print @reasons;
    return;
}

sub write_file {
    my ($self, $name, @text) = @_;
    my $path = "$self->{dir}/$name";
    open my $out, '>', $path or die "$path: $!\n";
    print {$out} @text;
    close $out or die "$path: $!\n";
    return;
}

# 0: green; 75: only the rig failed; 1: red.
sub status {
    my ($self) = @_;
    return $self->{red} ? 1 : $self->{rig_failed} ? VGPU::Check::Step::RIG_FAILED : 0;
}

1;
