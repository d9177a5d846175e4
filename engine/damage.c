// SPDX-License-Identifier: MIT
#include "damage.h"

#include <glib.h>

struct area area_intersect(struct area a, struct area b)
{
    return (struct area){MAX(a.left, b.left), MAX(a.top, b.top), MIN(a.right, b.right),
                         MIN(a.bottom, b.bottom)};
}

bool area_is_empty(struct area area)
{
    return area.left >= area.right || area.top >= area.bottom;
}

static struct area area_unite(struct area a, struct area b)
{
    return (struct area){MIN(a.left, b.left), MIN(a.top, b.top), MAX(a.right, b.right),
                         MAX(a.bottom, b.bottom)};
}

void damage_add(struct damage *damage, struct area area)
{
    bool full = damage->count == DAMAGE_MAX_AREAS;
    unsigned int kept = 0;

    if (area_is_empty(area))
        return;
    for (unsigned int i = 0; i < damage->count; i++) {
        if (full || !area_is_empty(area_intersect(damage->areas[i], area)))
            area = area_unite(damage->areas[i], area);
        else
            damage->areas[kept++] = damage->areas[i];
    }
    damage->areas[kept++] = area;
    damage->count = kept;
}

bool damage_take(struct damage *damage, int64_t pixels, struct area *area)
{
    struct area *last;

    if (damage->count == 0)
        return false;
    last = &damage->areas[damage->count - 1];
    *area = *last;
    area->bottom = MIN(last->bottom, last->top + MAX(pixels / (last->right - last->left), 1));
    last->top = area->bottom;
    if (area_is_empty(*last))
        damage->count--;
    return true;
}
