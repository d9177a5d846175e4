// SPDX-License-Identifier: MIT
#include "memory_object.h"

#include <stdlib.h>
#include <sys/stat.h>

/* @lock: over the charge, held during the request; @charge empty: not charged yet. */
struct memory_object {
    struct memory_object *next;
    unsigned int references;
    pthread_mutex_t lock;
    struct layer_slice *slice;
    struct governor_object named;
    struct charge charge;
};

/* Over the list and the references. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_object *objects;

/* A DMA buffer's inode has no type at all; memory files are regular files. */
static bool tells_objects_apart(const struct stat *file)
{
    return (file->st_mode & S_IFMT) == 0 || S_ISREG(file->st_mode);
}

static struct memory_object *find_object(const struct stat *file, const struct layer_slice *slice)
{
    struct memory_object *object = objects;

    while (object && (object->slice != slice || object->named.device != file->st_dev ||
                      object->named.inode != file->st_ino))
        object = object->next;
    return object;
}

static struct memory_object *add_object(const struct stat *file, struct layer_slice *slice)
{
    struct memory_object *object = calloc(1, sizeof(*object));

    if (!object)
        return NULL;
    pthread_mutex_init(&object->lock, NULL);
    object->slice = slice;
    object->named.device = file->st_dev;
    object->named.inode = file->st_ino;
    object->next = objects;
    objects = object;
    return object;
}

struct memory_object *memory_object_get(int fd, struct layer_slice *slice)
{
    struct memory_object *object;
    struct stat file;

    if (fstat(fd, &file) < 0 || !tells_objects_apart(&file))
        return NULL;
    pthread_mutex_lock(&list_lock);
    object = find_object(&file, slice);
    if (!object)
        object = add_object(&file, slice);
    if (object)
        object->references++;
    pthread_mutex_unlock(&list_lock);
    return object;
}

static void unlink_object(struct memory_object *object)
{
    struct memory_object **at = &objects;

    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
}

void memory_object_put(struct memory_object *object)
{
    bool last;

    if (!object)
        return;
    pthread_mutex_lock(&list_lock);
    last = --object->references == 0;
    if (last)
        unlink_object(object);
    pthread_mutex_unlock(&list_lock);
    if (!last)
        return;
    if (object->charge.bytes) {
        governor_member_forget(object->slice->member, &object->named);
        memory_uncount(&object->charge);
    }
    pthread_mutex_destroy(&object->lock);
    free(object);
}

void memory_object_export(struct memory_object *object, struct charge *charge)
{
    pthread_mutex_lock(&object->lock);
    if (!object->charge.bytes) {
        governor_member_export(object->slice->member, &object->named, charge->bytes, charge->kind);
        object->charge = *charge;
        *charge = (struct charge){0};
    }
    pthread_mutex_unlock(&object->lock);
}

bool memory_object_import(struct memory_object *object, uint64_t bytes, uint32_t heap)
{
    bool charged;

    pthread_mutex_lock(&object->lock);
    charged = object->charge.bytes > 0;
    if (!charged && governor_member_import(object->slice->member, &object->named, bytes)) {
        object->charge = (struct charge){
            .bytes = bytes, .slice = object->slice, .kind = GOVERNOR_MEMORY_DEVICE, .heap = heap};
        memory_count(&object->charge);
        charged = true;
    }
    pthread_mutex_unlock(&object->lock);
    return charged;
}
