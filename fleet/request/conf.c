/* SPDX-License-Identifier: MIT */
#include "fleet/request/conf.h"

#include <string.h>

#define LINE_MAX_ 512

/* Where a line belongs: at most one of these is set. */
typedef struct {
    FleetModel *model;
    FleetPartition *partition;
    FleetClassRule *class;
    FleetNodeRule *node;
} Section;

void fleet_conf_init(FleetConf *conf)
{
    memset(conf, 0, sizeof(*conf));
    for (FleetClass class = 0; class < FLEET_CLASSES; class ++)
        conf->classes[class].floor = 100;
    conf->classes[FLEET_CLASS_BEST_EFFORT].floor = 25;
    conf->node = (FleetNodeRule){.requeue = true, .orphans = 600};
}

const FleetModel *fleet_conf_model(const FleetConf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->model_count; i++)
        if (!strcmp(conf->models[i].name, name))
            return &conf->models[i];
    return NULL;
}

const FleetPartition *fleet_conf_partition(const FleetConf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->partition_count; i++)
        if (!strcmp(conf->partitions[i].name, name))
            return &conf->partitions[i];
    return NULL;
}

static bool copy_word(char *to, size_t size, const char *word)
{
    size_t length = strlen(word);

    if (!length || length >= size)
        return false;
    memcpy(to, word, length + 1);
    return true;
}

static bool new_model(FleetConf *conf, const char *name, Section *section)
{
    if (conf->model_count == FLEET_MODELS_MAX || !fleet_name_ok(name) ||
        fleet_conf_model(conf, name))
        return false;
    section->model = &conf->models[conf->model_count++];
    return copy_word(section->model->name, sizeof(section->model->name), name);
}

static bool new_partition(FleetConf *conf, const char *name, Section *section)
{
    if (conf->partition_count == FLEET_PARTITIONS_MAX || fleet_conf_partition(conf, name))
        return false;
    section->partition = &conf->partitions[conf->partition_count++];
    return copy_word(section->partition->name, sizeof(section->partition->name), name);
}

/* "[KIND NAME]", cut up, or "[node]". */
static bool begin_section(FleetConf *conf, char *line, Section *section)
{
    char *end = strchr(line, ']'), *name = strchr(line, ' ');

    *section = (Section){0};
    if (!strcmp(line, "[node]")) {
        section->node = &conf->node;
        return true;
    }
    if (!end || end[1] || !name)
        return false;
    *end = 0;
    *name++ = 0;
    if (!strcmp(line, "[model"))
        return new_model(conf, name, section);
    if (!strcmp(line, "[partition"))
        return new_partition(conf, name, section);
    if (strcmp(line, "[class") || fleet_class_of(name) == FLEET_CLASS_NONE)
        return false;
    section->class = &conf->classes[fleet_class_of(name)];
    return true;
}

/* "a,b": what @each does of every word; false as soon as it is. */
static bool each_word(char *words, bool (*each)(const char *word, void *data), void *data)
{
    char *rest = NULL, *word = strtok_r(words, ", ", &rest);

    if (!word)
        return false;
    for (; word; word = strtok_r(NULL, ", ", &rest))
        if (!each(word, data))
            return false;
    return true;
}

static bool add_door(const char *word, void *data)
{
    unsigned *doors = data;
    FleetDoor door = fleet_door_of(word);

    *doors |= 1u << door;
    return door != FLEET_DOOR_NONE && door != FLEET_DOOR_AUTO;
}

static bool add_class(const char *word, void *data)
{
    unsigned *classes = data;

    *classes |= 1u << fleet_class_of(word);
    return fleet_class_of(word) != FLEET_CLASS_NONE;
}

static bool add_qos(const char *word, void *data)
{
    FleetClassRule *rule = data;

    return rule->qos_count < FLEET_QOS_MAX &&
           copy_word(rule->qos[rule->qos_count++], sizeof(rule->qos[0]), word);
}

static bool set_partition(FleetPartition *partition, const char *key, char *value)
{
    if (!strcmp(key, "model"))
        return fleet_name_ok(value) && copy_word(partition->model, sizeof(partition->model), value);
    if (!strcmp(key, "doors"))
        return each_word(value, add_door, &partition->doors);
    if (!strcmp(key, "classes"))
        return each_word(value, add_class, &partition->classes);
    if (!strcmp(key, "door"))
        return (partition->door = fleet_door_of(value)) != FLEET_DOOR_NONE;
    if (!strcmp(key, "default"))
        return (partition->is_default = !strcmp(value, "yes"));
    return false;
}

static bool set_class(FleetClassRule *rule, const char *key, char *value)
{
    if (!strcmp(key, "floor"))
        return fleet_number_parse(value, 1, 100, &rule->floor);
    if (!strcmp(key, "priority"))
        return fleet_number_parse(value, 0, FLEET_PRIORITY_MAX, &rule->priority);
    if (!strcmp(key, "qos"))
        return each_word(value, add_qos, rule);
    return false;
}

static bool set_yes(bool *yes, const char *value)
{
    *yes = !strcmp(value, "yes");
    return *yes || !strcmp(value, "no");
}

static bool set_node(FleetNodeRule *rule, const char *key, const char *value)
{
    if (!strcmp(key, "requeue"))
        return set_yes(&rule->requeue, value);
    if (!strcmp(key, "account"))
        return set_yes(&rule->account, value);
    return !strcmp(key, "orphans") && fleet_number_parse(value, 1, 86400, &rule->orphans);
}

static bool set_value(const Section *section, const char *key, char *value)
{
    if (section->model)
        return !strcmp(key, "vram") &&
               fleet_number_parse(value, 1, FLEET_MIB_MAX, &section->model->vram);
    if (section->partition)
        return set_partition(section->partition, key, value);
    if (section->node)
        return set_node(section->node, key, value);
    return section->class && set_class(section->class, key, value);
}

/* One line without blanks around it; neither empty nor a comment. */
static bool take_line(FleetConf *conf, char *line, Section *section)
{
    char *value = strchr(line, '=');

    if (line[0] == '[')
        return begin_section(conf, line, section);
    if (!value)
        return false;
    *value++ = 0;
    return set_value(section, line, value);
}

/* What the lines cannot say one by one. */
static bool check_whole(const FleetConf *conf, char *error)
{
    for (unsigned i = 0; i < conf->model_count; i++)
        if (!conf->models[i].vram)
            return fleet_error(error, "model %s has no vram=", conf->models[i].name);
    for (unsigned i = 0; i < conf->partition_count; i++) {
        const FleetPartition *partition = &conf->partitions[i];

        if (partition->model[0] && !fleet_conf_model(conf, partition->model))
            return fleet_error(error,
                               "partition %s has cards of the model %s, which has no section",
                               partition->name, partition->model);
        if (partition->door && partition->door != FLEET_DOOR_AUTO && partition->doors &&
            !(partition->doors & 1u << partition->door))
            return fleet_error(error,
                               "partition %s: door=%s is none of its doors=", partition->name,
                               fleet_door_word(partition->door));
    }
    return true;
}

bool fleet_conf_parse(const char *text, FleetConf *conf, char *error)
{
    Section section = {0};

    fleet_conf_init(conf);
    for (unsigned number = 1; *text; number++) {
        char line[LINE_MAX_], *start = line;
        size_t length = strcspn(text, "\n");

        if (length >= sizeof(line))
            return fleet_error(error, "line %u is too long", number);
        memcpy(line, text, length);
        text += length + (text[length] == '\n');
        while (length && strchr(" \t\r", line[length - 1]))
            length--;
        line[length] = 0;
        start += strspn(start, " \t");
        if (*start && *start != '#' && !take_line(conf, start, &section))
            return fleet_error(error, "line %u: \"%s\" is not known there", number, start);
    }
    return check_whole(conf, error);
}
