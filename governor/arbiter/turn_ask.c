// SPDX-License-Identifier: MIT
#include "arbiter_state.h"

/*
 * Sources that became ready at the same time are dispatched first, because they have waited longer.
 */
void turn_ask(struct arbiter *arbiter, unsigned classes)
{
    arbiter->asked |= classes;
    sd_event_source_set_enabled(arbiter->look, SD_EVENT_ONESHOT);
}
