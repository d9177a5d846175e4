# SPDX-License-Identifier: MIT
# A plugin of prove: appends to the file VGPU_RESULTS one JSON object for each test file, on a line of its own:
#
#   file      as prove was told it
#   seconds   how long it ran
#   ok        whether it passed
#   points    how many test points it ran
#   skips     [name, reason] of each point that was skipped; a file that was skipped whole has the name ""
#
# A test file that never ran has no line, so whoever reads the results must know which files to expect.
package App::Prove::Plugin::VGPUResults;

use strict;
use warnings;

sub load {
    my ($class, $p) = @_;
    $p->{app_prove}->formatter('VGPU::ResultsFormatter') if $ENV{VGPU_RESULTS};
    return 1;
}

1;
