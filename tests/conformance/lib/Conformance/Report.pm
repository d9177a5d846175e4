# SPDX-License-Identifier: MIT
# The results of all judges in all places: kept as JSON, compared with the control, and written into the document.
package Conformance::Report;

use strict;
use warnings;

use JSON::PP ();
use Conformance::Judges;
use Conformance::Place;

my $json = JSON::PP->new->pretty->canonical;
my $ends_well = $Conformance::Judges::ends_well;
my %heads = (control => 'control', guest => 'VM', native => 'container, native', guarded => 'container, guarded');

sub load {
    my ($class, $file) = @_;
    return bless({ file => $file }, $class)->reload;
}

sub reload {
    my ($self) = @_;
    $self->{results} = -s $self->{file} ? $json->decode(slurp($self->{file})) : {};
    return $self;
}

sub slurp {
    my ($file) = @_;
    open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
    local $/ = undef;
    return <$in>;
}

sub spew {
    my ($file, $text) = @_;
    open my $out, '>:encoding(UTF-8)', "$file.new" or die "$file.new: $!\n";
    print {$out} $text;
    CORE::close($out) or die "$file.new: $!\n";
    rename "$file.new", $file or die "$file: $!\n";
    return;
}

# It is written after each program: a run takes an hour, and may be stopped. Another run may have written meanwhile, for
# other places.
sub add {
    my ($self, $place, $judge, $result) = @_;
    $self->reload;
    $self->{results}{places}{$place}{$judge} = $result;
    spew($self->{file}, $json->encode($self->{results}));
    return;
}

sub versions {
    my ($self, $versions) = @_;
    $self->reload;
    $self->{results}{versions} = $versions;
    spew($self->{file}, $json->encode($self->{results}));
    return;
}

sub result { my ($self, $place, $judge) = @_; return $self->{results}{places}{$place}{$judge} }

# Points that pass in the control and fail in another place: [place, judge, point]...
sub differences {
    my ($self) = @_;
    my @found;
    for my $judge (@Conformance::Judges::names) {
        my $control = $self->result('control', $judge) or next;
        for my $place (grep { $_ ne 'control' } @Conformance::Place::names) {
            my $there = $self->result($place, $judge) or next;
            my @points = grep { $control->{points}{$_} eq 'pass' && state($there, $_) ne 'pass' } sort keys %{ $control->{points} };
            push @found, map { [$place, $judge, $_] } grep { state($there, $_) ne 'not reached' } @points;
            my $stopped = grep { state($there, $_) eq 'not reached' } @points;
            push @found, [$place, $judge, "stopped before $stopped points"] if $stopped;
        }
    }
    return @found;
}

# The file of known differences: PLACE JUDGE REGEX, the latter for whole names of points.
sub known {
    my ($file) = @_;
    my @known;
    for my $line (grep { /^\S/ && !/^#/ } split /\n/, slurp($file)) {
        my ($place, $judge, $regex) = $line =~ /^(\S+)\s+(\S+)\s+(.+?)\s*$/ or die "$file: $line\n";
        push @known, [$place, $judge, qr/^(?:$regex)$/];
    }
    return @known;
}

sub is_known {
    my ($difference, @known) = @_;
    my ($place, $judge, $point) = @$difference;
    return grep { $_->[0] eq $place && $_->[1] eq $judge && $point =~ $_->[2] } @known;
}

# The result of a control's point in another place. If a program was stopped at its limit before it reached the point,
# the point has not failed, but it was not judged either.
sub state {
    my ($result, $point) = @_;
    return $result->{points}{$point} // ($result->{status} == 124 ? 'not reached' : 'fail');
}

# The exit status of a stopped program says nothing.
sub cut_short { my ($result, $point) = @_; return $point eq $ends_well && $result->{status} == 124 }

# "320 pass, 1 fail, 2 skip".
sub cell {
    my ($result, $control) = @_;
    return 'not run' if !$result;
    my %all = (%{ $control->{points} // {} }, %{ $result->{points} });
    my %count;
    $count{ state($result, $_) }++ for grep { !cut_short($result, $_) } keys %all;
    return join ', ', map { "$count{$_} $_" } grep { $count{$_} } 'pass', 'fail', 'skip', 'not reached';
}

# Programs without a result in any place: they are no rows of dashes, but a sentence.
sub unrun {
    my ($self) = @_;
    return grep { my $judge = $_; !grep { $self->result($_, $judge) } @Conformance::Place::names } @Conformance::Judges::names;
}

sub row { return '| ' . join(' | ', @_) . " |\n" }

sub table {
    my ($self) = @_;
    my @places = @Conformance::Place::names;
    my $text = row('program', 'version', 'what of it', map { $heads{$_} } @places) . row(('---') x (3 + @places));
    my %unrun = map { $_ => 1 } $self->unrun;
    for my $judge (grep { !$unrun{$_} } @Conformance::Judges::names) {
        my $about = Conformance::Judges::get($judge);
        my $control = $self->result('control', $judge);
        $text .= row($judge, $self->{results}{versions}{ $about->{package} } // '?', $about->{subset},
            map { cell($self->result($_, $judge), $control) } @places);
    }
    $text .= "\nNothing is known of " . join(', ', sort keys %unrun) . ": they have not been run.\n" if %unrun;
    return $text;
}

# Failures, by judge and point, with the places: the control's own failures, too.
sub failures {
    my ($self) = @_;
    my %where;
    for my $judge (@Conformance::Judges::names) {
        my $control = $self->result('control', $judge);
        for my $place (@Conformance::Place::names) {
            my $there = $self->result($place, $judge) or next;
            my %all = (%{ $control->{points} // {} }, %{ $there->{points} });
            push @{ $where{$judge}{$_} }, $heads{$place} for grep { state($there, $_) eq 'fail' && !cut_short($there, $_) } keys %all;
        }
    }
    my $text = '';
    for my $judge (grep { $where{$_} } @Conformance::Judges::names) {
        $text .= row($judge, "`$_`", join('; ', @{ $where{$judge}{$_} })) for sort keys %{ $where{$judge} };
    }
    return $text eq '' ? "Nothing fails anywhere.\n" : row(qw(program point where)) . row(('---') x 3) . $text;
}

sub generated {
    my ($self) = @_;
    my $versions = $self->{results}{versions};
    my $below = join ', ', map { "$_ $versions->{$_}" } grep { $versions->{$_} } qw(mesa-vulkan-drivers mesa-opencl-icd libggml0-backend-vulkan libvulkan1);
    return "Below them in every place: $below.\n\n" . $self->table . "\nWhat fails:\n\n" . $self->failures;
}

my ($begin, $end) = ('<!-- make conformance writes this: begin -->', '<!-- end -->');

# Replaces the text between the document's two marks.
sub write_document {
    my ($self, $file) = @_;
    my $text = slurp($file);
    my $new = $self->generated;
    $text =~ s/\Q$begin\E.*\Q$end\E/$begin\n\n$new\n$end/s or die "$file has no '$begin' and '$end'\n";
    spew($file, $text);
    return;
}

1;
