// The part of the C++ ABI for exceptions that programs here need: classes without
// bases are thrown by value, and one exception is in flight at a time.

#include "host.h"
#include <unwind.h>

// Every class that is thrown has a type_info, whose first word points here. Nothing
// calls its functions: types are compared by address.
extern "C" {
const void *_ZTVN10__cxxabiv117__class_type_infoE[4] = {};
extern const char __eh_frame_start[];
void __register_frame_info(const void *begin, void *object);
[[noreturn]] void abort(void);
void *malloc(size_t);
void free(void *);
}

namespace {

enum { ROOM = 64, EXIT_NOT_CAUGHT = 119 };

// What is thrown: the header of the unwinder, the type, then the value.
struct Thrown {
    const void *type;
    unsigned caught;
    _Unwind_Exception header;
    alignas(16) unsigned char value[ROOM];
};

Thrown slots[4];
unsigned used;
Thrown *current;

Thrown *of(void *value)
{
    return reinterpret_cast<Thrown *>(static_cast<unsigned char *>(value) - offsetof(Thrown, value));
}

Thrown *of(_Unwind_Exception *header)
{
    auto *at = reinterpret_cast<unsigned char *>(header);
    return reinterpret_cast<Thrown *>(at - offsetof(Thrown, header));
}

// --- Tables of a function: its calls, where each lands, and what is caught there ----

uintptr_t read_uleb(const uint8_t *&at)
{
    uintptr_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *at++;
        value |= uintptr_t(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

intptr_t read_sleb(const uint8_t *&at)
{
    uintptr_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *at++;
        value |= uintptr_t(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (byte & 0x40 && shift < 8 * sizeof value)
        value |= ~uintptr_t(0) << shift;
    return intptr_t(value);
}

// DWARF pointer encodings: the low half is the size, the high half says what is added.
enum { OMITTED = 0xff, FORM = 0x0f, RELATIVE = 0x10, INDIRECT = 0x80 };

unsigned size_of(uint8_t encoding)
{
    switch (encoding & FORM) {
    case 0x02: return 2;
    case 0x03: case 0x0b: return 4;
    case 0x04: case 0x0c: return 8;
    default: return sizeof(void *);
    }
}

uintptr_t read_encoded(const uint8_t *&at, uint8_t encoding)
{
    if ((encoding & FORM) == 0x01)
        return read_uleb(at);
    const uint8_t *from = at;
    uintptr_t value = 0;
    unsigned size = size_of(encoding);
    memcpy(&value, at, size);
    at += size;
    if (encoding & 0x08 && size == 4)
        value = uintptr_t(intptr_t(int32_t(value)));
    if (!value)
        return 0;
    if (encoding & RELATIVE)
        value += reinterpret_cast<uintptr_t>(from);
    if (encoding & INDIRECT)
        value = *reinterpret_cast<uintptr_t *>(value);
    return value;
}

struct Landing {
    uintptr_t pad;
    intptr_t filter;    // 0: only destructors
};

// Where an exception of a type lands in a function, if it does.
Landing find_landing(_Unwind_Context *context, const void *type)
{
    Landing none = {0, 0};
    auto *at = static_cast<const uint8_t *>(_Unwind_GetLanguageSpecificData(context));
    if (!at)
        return none;
    uintptr_t start = _Unwind_GetRegionStart(context), base = start;
    uintptr_t pc = _Unwind_GetIP(context) - 1 - start;
    uint8_t encoding = *at++;
    if (encoding != OMITTED)
        base = read_encoded(at, encoding);
    uint8_t type_encoding = *at++;
    const uint8_t *types = nullptr;
    if (type_encoding != OMITTED) {
        uintptr_t distance = read_uleb(at);
        types = at + distance;
    }
    uint8_t call_encoding = *at++;
    uintptr_t length = read_uleb(at);
    const uint8_t *actions = at + length;
    while (at < actions) {
        uintptr_t from = read_encoded(at, call_encoding);
        uintptr_t size = read_encoded(at, call_encoding);
        uintptr_t pad = read_encoded(at, call_encoding);
        uintptr_t action = read_uleb(at);
        if (pc < from || pc >= from + size)
            continue;
        if (!pad)
            return none;
        Landing landing = {base + pad, 0};
        const uint8_t *next = action ? actions + action - 1 : nullptr;
        while (next) {
            intptr_t filter = read_sleb(next);
            const uint8_t *here = next;
            intptr_t distance = read_sleb(next);
            if (filter > 0) {
                const uint8_t *entry = types - filter * intptr_t(size_of(type_encoding));
                auto *caught = reinterpret_cast<const void *>(read_encoded(entry, type_encoding));
                // Everything, or this very type.
                if (!caught || caught == type) {
                    landing.filter = filter;
                    return landing;
                }
            }
            next = distance ? here + distance : nullptr;
        }
        return landing;
    }
    return none;
}

} // namespace

extern "C" {

// The unwinder asks twice: first which function catches, then each that has something
// to destroy on the way.
_Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions,
                                         _Unwind_Exception_Class, _Unwind_Exception *header,
                                         _Unwind_Context *context)
{
    if (version != 1)
        return _URC_FATAL_PHASE1_ERROR;
    Landing landing = find_landing(context, of(header)->type);
    if (!landing.pad || (actions & _UA_SEARCH_PHASE && !landing.filter))
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    auto value = reinterpret_cast<_Unwind_Word>(header);
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), value);
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(1), _Unwind_Word(landing.filter));
    _Unwind_SetIP(context, landing.pad);
    return _URC_INSTALL_CONTEXT;
}

void *__cxa_allocate_exception(size_t size)
{
    if (size > ROOM)
        abort();
    Thrown *thrown = &slots[used++ % 4];
    return thrown->value;
}

void __cxa_free_exception(void *) {}

[[noreturn]] static void raise(Thrown *thrown)
{
    static uintptr_t object[8];
    static bool registered;
    if (!registered)
        __register_frame_info(__eh_frame_start, object);
    registered = true;
    _Unwind_RaiseException(&thrown->header);
    exit(EXIT_NOT_CAUGHT);
}

[[noreturn]] void __cxa_throw(void *value, void *type, void (*)(void *))
{
    Thrown *thrown = of(value);
    thrown->type = type;
    raise(thrown);
}

[[noreturn]] void __cxa_rethrow(void)
{
    raise(current);
}

void *__cxa_begin_catch(void *header)
{
    current = of(static_cast<_Unwind_Exception *>(header));
    return current->value;
}

void __cxa_end_catch(void) {}

[[noreturn]] void _ZSt9terminatev(void) { exit(EXIT_NOT_CAUGHT); }
[[noreturn]] void abort(void) { exit(EXIT_NOT_CAUGHT); }

// The unwinder does without: it searches frames one by one.
void *malloc(size_t) { return nullptr; }
void free(void *) {}

}
