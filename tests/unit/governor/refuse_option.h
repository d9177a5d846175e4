/* SPDX-License-Identifier: MIT */
/* Another kernel for this process and its children: one that fails for a socket option. */
#ifndef GOVERNOR_REFUSE_OPTION_H
#define GOVERNOR_REFUSE_OPTION_H

#define OPTION_PEERPIDFD  77
#define OPTION_PASSRIGHTS 83

/* Setting and getting @option, of SOL_SOCKET, then fails with errno @error. */
void refuse_option(int option, int error);

#endif
