// A hash map from 64-bit keys to pointers, with open addressing and without removal.
#ifndef MAP_H
#define MAP_H

#include "common.h"

struct map {
    struct map_slot {
        uint64_t key_and_one; // 0 while the slot is empty
        void *value;
    } *slots;
    size_t count, capacity; // the capacity is a power of two
};

static inline struct map_slot *map_seek(const struct map *map, uint64_t key) {
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    size_t index = (hash ^ hash >> 32) & (map->capacity - 1);
    while (map->slots[index].key_and_one && map->slots[index].key_and_one != key + 1)
        index = (index + 1) & (map->capacity - 1);
    return &map->slots[index];
}

// Returns the slot for the value of `key`. The slot of a new key contains null. The pointer is
// valid until the next call.
static inline void **map_place(struct map *map, uint64_t key) {
    if (map->count * 2 >= map->capacity) {
        struct map old = *map;
        map->capacity = old.capacity ? old.capacity * 2 : 64;
        map->slots = checked(calloc(map->capacity, sizeof *map->slots));
        for (size_t i = 0; i < old.capacity; i++) {
            if (old.slots[i].key_and_one) *map_seek(map, old.slots[i].key_and_one - 1) = old.slots[i];
        }
        free(old.slots);
    }
    struct map_slot *slot = map_seek(map, key);
    if (!slot->key_and_one) {
        slot->key_and_one = key + 1;
        map->count++;
    }
    return &slot->value;
}

static inline void *map_get(const struct map *map, uint64_t key) {
    return map->capacity ? map_seek(map, key)->value : NULL;
}

#endif
