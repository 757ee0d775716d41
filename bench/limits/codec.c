// The limit of the codec: msgpack-c decodes Tambour's packets field by field and packs them again.
#include "common.h"

#include <msgpack.h>

enum { PASSES = 5 };
// The longest time of a pass, whatever --repeat says.
static const int64_t PASS_NS = 50000000;

// The schema that a typed decoder knows: the keys of each map, and the shapes of their values.
struct shape {
    struct field {
        const char *key;
        uint32_t length;
        struct shape *shape;
    } *fields;
    size_t field_count, field_capacity;
    struct shape *element; // of an array, or of a map with keys that are not strings
};

struct packet {
    const char *name, *bytes;
    uint32_t name_length, length;
};

static volatile uint64_t sink;

static const char *read_file(const char *file, size_t *length) {
    FILE *stream = fopen(file, "rb");
    if (!stream) die("cannot read %s", file);
    char *bytes = NULL;
    size_t capacity = 0;
    for (*length = 0; !feof(stream);) {
        if (capacity - *length < 65536) bytes = checked(realloc(bytes, capacity = capacity * 2 + 65536));
        *length += fread(bytes + *length, 1, capacity - *length, stream);
        if (ferror(stream)) die("cannot read %s", file);
    }
    fclose(stream);
    return bytes;
}

// Reads a little-endian u32 length, and then as many bytes as the length says.
static const char *take(const char **at, const char *end, uint32_t *length) {
    const unsigned char *bytes = (const unsigned char *)*at;
    if (end - *at < 4) die("the file ends inside a packet");
    *length = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    if ((size_t)(end - *at - 4) < *length) die("the file ends inside a packet");
    const char *content = *at + 4;
    *at = content + *length;
    return content;
}

static struct field *find(const struct shape *shape, const msgpack_object_str *key) {
    for (size_t i = 0; i < shape->field_count; i++) {
        struct field *field = &shape->fields[i];
        if (field->length == key->size && !memcmp(field->key, key->ptr, key->size)) return field;
    }
    return NULL;
}

static void learn(struct shape *shape, const msgpack_object *object);

static void learn_element(struct shape *shape, const msgpack_object *object) {
    if (!shape->element) shape->element = checked(calloc(1, sizeof *shape->element));
    learn(shape->element, object);
}

static void learn_field(struct shape *shape, const msgpack_object_kv *pair) {
    struct field *field = find(shape, &pair->key.via.str);
    if (!field) {
        shape->fields = grown(shape->fields, shape->field_count, &shape->field_capacity, sizeof *shape->fields);
        field = &shape->fields[shape->field_count++];
        // The key points into the packet, which stays in memory.
        *field = (struct field){pair->key.via.str.ptr, pair->key.via.str.size, checked(calloc(1, sizeof *shape))};
    }
    learn(field->shape, &pair->val);
}

static void learn(struct shape *shape, const msgpack_object *object) {
    if (object->type == MSGPACK_OBJECT_ARRAY) {
        for (uint32_t i = 0; i < object->via.array.size; i++) learn_element(shape, &object->via.array.ptr[i]);
    } else if (object->type == MSGPACK_OBJECT_MAP) {
        for (uint32_t i = 0; i < object->via.map.size; i++) {
            const msgpack_object_kv *pair = &object->via.map.ptr[i];
            if (pair->key.type == MSGPACK_OBJECT_STR) learn_field(shape, pair);
            else learn_element(shape, &pair->val);
        }
    }
}

static uint64_t touch_bytes(const char *bytes, uint32_t size) {
    return size ? size + (unsigned char)bytes[0] + (unsigned char)bytes[size - 1] : 1;
}

// Does the work of a typed decoder on a tree: finds each key among the known keys, and reads each
// value.
static uint64_t walk(const struct shape *shape, const msgpack_object *object) {
    uint64_t sum = 0;
    switch (object->type) {
    case MSGPACK_OBJECT_MAP:
        for (uint32_t i = 0; i < object->via.map.size; i++) {
            const msgpack_object_kv *pair = &object->via.map.ptr[i];
            if (pair->key.type == MSGPACK_OBJECT_STR) {
                const struct field *field = find(shape, &pair->key.via.str);
                if (field) sum += walk(field->shape, &pair->val) + field->length;
            } else {
                sum += pair->key.via.u64 + walk(shape->element, &pair->val);
            }
        }
        return sum;
    case MSGPACK_OBJECT_ARRAY:
        for (uint32_t i = 0; i < object->via.array.size; i++) sum += walk(shape->element, &object->via.array.ptr[i]);
        return sum;
    case MSGPACK_OBJECT_STR:
        return touch_bytes(object->via.str.ptr, object->via.str.size);
    case MSGPACK_OBJECT_BIN:
        return touch_bytes(object->via.bin.ptr, object->via.bin.size);
    case MSGPACK_OBJECT_EXT:
        return touch_bytes(object->via.ext.ptr, object->via.ext.size);
    case MSGPACK_OBJECT_BOOLEAN:
        return object->via.boolean;
    case MSGPACK_OBJECT_NIL:
        return 1;
    default:
        return object->via.u64; // integers and floats
    }
}

static void unpack(msgpack_unpacked *unpacked, const struct packet *packet) {
    size_t offset = 0;
    msgpack_unpack_return result = msgpack_unpack_next(unpacked, packet->bytes, packet->length, &offset);
    if (result != MSGPACK_UNPACK_SUCCESS || offset != packet->length)
        die("%.*s is no MessagePack value", (int)packet->name_length, packet->name);
}

static void decode(msgpack_unpacked *unpacked, const struct shape *shape, const struct packet *packet) {
    unpack(unpacked, packet);
    sink += walk(shape, &unpacked->data);
}

static void encode(msgpack_sbuffer *buffer, const msgpack_object *object) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
    msgpack_sbuffer_clear(buffer);
    if (msgpack_pack_object(&packer, *object)) die("out of memory");
    sink += buffer->size;
}

// Returns the number of repetitions in a pass if one repetition takes `ns` nanoseconds.
static int64_t bounded(int64_t repeat, int64_t ns) {
    int64_t most = PASS_NS / (ns > 0 ? ns : 1) + 1;
    return repeat < most ? repeat : most;
}

static double best(double a, double b) {
    return a == 0 || b < a ? b : a;
}

static void measure(const struct packet *packet, int64_t repeat) {
    msgpack_unpacked kept, scratch;
    msgpack_unpacked_init(&kept);
    msgpack_unpacked_init(&scratch);
    unpack(&kept, packet);
    struct shape shape = {0};
    learn(&shape, &kept.data);
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);

    decode(&scratch, &shape, packet);
    int64_t start = clock_ns(CLOCK_MONOTONIC);
    decode(&scratch, &shape, packet);
    int64_t decodes = bounded(repeat, clock_ns(CLOCK_MONOTONIC) - start);
    encode(&buffer, &kept.data);
    start = clock_ns(CLOCK_MONOTONIC);
    encode(&buffer, &kept.data);
    int64_t encodes = bounded(repeat, clock_ns(CLOCK_MONOTONIC) - start);

    double decode_ns = 0, encode_ns = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        start = clock_ns(CLOCK_MONOTONIC);
        for (int64_t i = 0; i < decodes; i++) decode(&scratch, &shape, packet);
        decode_ns = best(decode_ns, (double)(clock_ns(CLOCK_MONOTONIC) - start) / decodes);
        start = clock_ns(CLOCK_MONOTONIC);
        for (int64_t i = 0; i < encodes; i++) encode(&buffer, &kept.data);
        encode_ns = best(encode_ns, (double)(clock_ns(CLOCK_MONOTONIC) - start) / encodes);
    }
    // `packed_bytes` equals `bytes` if all numbers in the packet have their shortest form.
    printf("{\"packet\":\"%.*s\",\"bytes\":%u,\"packed_bytes\":%zu,\"decode_ns\":%.1f,\"encode_ns\":%.1f}\n",
           (int)packet->name_length, packet->name, packet->length, buffer.size, decode_ns, encode_ns);
    msgpack_sbuffer_destroy(&buffer);
    msgpack_unpacked_destroy(&scratch);
    msgpack_unpacked_destroy(&kept);
}

int main(int argc, char **argv) {
    const char *usage = "codec --packets FILE [--repeat N]";
    const char *file = NULL, *repeat_option = "100000";
    parse_options(argc, argv, (struct option[]){{"--packets", &file}, {"--repeat", &repeat_option}, {0}}, usage);
    if (!file) die("usage: %s", usage);
    int64_t repeat = parse_number(repeat_option);
    if (repeat <= 0) die("--repeat is above 0");
    size_t length;
    const char *at = read_file(file, &length), *end = at + length;
    while (at < end) {
        struct packet packet;
        packet.name = take(&at, end, &packet.name_length);
        packet.bytes = take(&at, end, &packet.length);
        measure(&packet, repeat);
    }
}
