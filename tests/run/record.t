#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# tests/run/record: what it draws of a run, and that the pages' recordings are of their commands.
use strict;
use warnings;
use utf8;
use File::Temp;
use JSON::PP;
use Test::More;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);

my $report = File::Temp->new;

sub drawn_of {
    my (%report) = @_;
    seek $report, 0, 0;
    truncate $report, 0;
    print {$report} JSON::PP->new->encode(\%report);
    $report->flush;
    my $said = `tests/run/record demo $report 2>&1`;
    utf8::decode($said);
    return ($? >> 8, $said);
}

# The lines of text of a picture, as a reader sees them.
sub lines_of { return map { s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&amp;/&/gr } $_[0] =~ m{^<text [^>]*>([^<]*)</text>$}mg }

my @steps = (
    { name => 'One & <two>', ok => JSON::PP::true, seconds => 30, seen => join "\n", 'a' x 200, 'b', 'c', 'd' },
    { name => 'Three', ok => JSON::PP::false, seconds => 0.5, seen => 'no room' },
);
my ($status, $picture) = drawn_of(commit => '0123abcd', steps => \@steps);
is($status, 0, 'a report is drawn');
my @lines = lines_of($picture);
is($lines[0], ' 1  One & <two>', 'a step begins with its name');
is_deeply([@lines[2 .. 6]], ['    b', '    …', '    ok, 30.0 s', ' 2  Three', '    no room'], 'the first of what it saw, its time, and the next step');
like($lines[1], qr/^ {4}a{113}…$/, 'a line that is too wide ends with "…"');
is($lines[7], '    FAILED, 0.5 s', 'a step that failed is said to have failed');
like($lines[-1], qr/^A recording of "make demo", commit 0123abcd, \d{4}-\d\d-\d\d; not in real time\.$/, 'the last line says what it is');
my ($latest) = sort { $b <=> $a } $picture =~ /animation-duration:([\d.]+)s/g;
cmp_ok($latest, '<', 5, 'a wait of 30 s is not drawn as one');
($status, $picture) = drawn_of(steps => \@steps);
is("$status $picture", "255 $report does not say of which commit it is: run \"make demo\" again\n", 'a report without a commit is refused');

# The pages' picture.
sub slurp { my ($path) = @_; open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n"; local $/; return <$in> }
my @commands = slurp('README.md') =~ /^ *try\$ ([^#\n]*?) *(?:#.*)?$/mg;
@lines = lines_of(slurp('docs/pictures/try.svg'));
is_deeply([map { /^try\$ (.*)/ ? $1 : () } @lines], \@commands, 'try.svg shows the commands of the README');
like($lines[-1], qr/^A recording of "make try", commit [0-9a-f]{7,}, /, 'and names a commit, without changes that are not in it');
done_testing();
