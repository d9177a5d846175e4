# SPDX-License-Identifier: MIT
# Named steps: each is announced, timed, logged to a file of its own, and listed in the table and in
# report.json together with its result. The report says of which commit it is, if this is a checkout.
package VGPU::Steps;

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP ();
use Time::HiRes qw(time);
use VGPU::Command;

sub new {
    my ($class, $dir) = @_;
    remove_tree("$dir/logs");
    make_path("$dir/logs");
    unlink "$dir/report.json";
    chomp(my $commit = `git describe --always --dirty --exclude '*' 2>/dev/null` // '');
    return bless { dir => $dir, commit => $commit, steps => [], begin => time }, $class;
}

# Runs $code, which returns its result (one line or more) or dies.
sub step {
    my ($self, $name, $code) = @_;
    my $number = 1 + @{ $self->{steps} };
    (my $slug = lc $name) =~ s/[^a-z0-9]+/-/g;
    my $log = sprintf '%s/logs/%02d-%s.log', $self->{dir}, $number, substr($slug, 0, 40) =~ s/-$//r;
    my $begin = time;

    VGPU::Command::log_to($log);
    printf "%2d  %s\n", $number, $name;
    my $seen = eval { $code->() };
    my $error = $@;
    my $step = {
        name => $name,
        ok => $error ? JSON::PP::false : JSON::PP::true,
        seconds => 0 + sprintf('%.1f', time - $begin),
        seen => $error || $seen,
    };
    push @{ $self->{steps} }, $step;
    $step->{seen} =~ s/\s+\z//;
    print map { "      $_\n" } split /\n/, $step->{seen};
    if ($error) {
        VGPU::Command::note($error);
        $self->{failed} = { %$step, log => $log };
        die "step $number failed\n";
    }
    printf "      ok, %.1f s\n", $step->{seconds};
    return;
}

# The table for a person and report.json; true if everything succeeded.
sub finish {
    my ($self) = @_;
    my $ok = !$self->{failed} && @{ $self->{steps} };
    my $rule = '-' x 120;

    print "\n$rule\n";
    for my $step (@{ $self->{steps} }) {
        my ($first) = split /\n/, $step->{seen};
        printf "%-4s %6.1f s  %-44.44s  %s\n", $step->{ok} ? 'ok' : 'FAIL', $step->{seconds},
            $step->{name}, substr($first // '', 0, 100) =~ s/^\s+//r;
    }
    printf "%s\n%s in %.0f s\n", $rule, $ok ? 'All steps ok' : 'FAILED', time - $self->{begin};
    my $report = { ok => $ok ? JSON::PP::true : JSON::PP::false, commit => $self->{commit}, steps => $self->{steps} };
    my $file = "$self->{dir}/report.json";
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} JSON::PP->new->pretty->canonical->encode($report);
    close $out or die "$file: $!\n";
    print "report: $file\n";
    if (my $failed = $self->{failed}) {
        print STDERR "\nThe step that failed: $failed->{name}\n  log: $failed->{log}\n";
    }
    return $ok;
}

1;
