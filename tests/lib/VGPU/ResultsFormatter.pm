# SPDX-License-Identifier: MIT
# prove's own output for a console, which also records each test file's result (see
# App::Prove::Plugin::VGPUResults).
package VGPU::ResultsFormatter;

use strict;
use warnings;

use parent 'TAP::Formatter::Console';

sub open_test {
    my ($self, $test, $parser) = @_;
    return VGPU::ResultsFormatter::Session->new($test, $parser, $self->SUPER::open_test($test, $parser));
}

# Wraps the session that prints.
package VGPU::ResultsFormatter::Session;

use Fcntl qw(:flock);
use JSON::PP;

our $AUTOLOAD;

sub new {
    my ($class, $file, $parser, $session) = @_;
    return bless { file => $file, parser => $parser, session => $session, skips => [] }, $class;
}

sub result {
    my ($self, $result) = @_;
    if ($result->is_test && $result->has_skip) {
        push @{ $self->{skips} }, [$result->description =~ s/^- //r, $result->explanation];
    }
    return $self->{session}->result($result);
}

sub close_test {
    my ($self) = @_;
    my $parser = $self->{parser};
    push @{ $self->{skips} }, ['', $parser->skip_all] if $parser->skip_all;
    append({
        file => $self->{file},
        seconds => 0 + sprintf('%.1f', ($parser->end_time // time) - $parser->start_time),
        ok => $parser->has_problems ? JSON::PP::false : JSON::PP::true,
        points => $parser->tests_run,
        skips => $self->{skips},
    });
    delete $self->{parser};
    return $self->{session}->close_test;
}

# Several provers may write to one file.
sub append {
    my ($record) = @_;
    my $path = $ENV{VGPU_RESULTS};
    open my $out, '>>', $path or die "$path: $!\n";
    flock $out, LOCK_EX or die "$path: $!\n";
    print {$out} JSON::PP->new->canonical->encode($record), "\n";
    close $out or die "$path: $!\n";
    return;
}

sub AUTOLOAD {
    my ($self, @args) = @_;
    my $method = $AUTOLOAD =~ s/.*:://r;
    return if $method eq 'DESTROY';
    return $self->{session}->$method(@args);
}

1;
