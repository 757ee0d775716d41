-- The part of the dissector that is written by hand. `make generate` puts `spec`, the tables of the specification,
-- in front of it and writes tambour.lua, the one file that Wireshark loads.
--
-- Lua 5.2 to 5.4, so no operator and no library that only one of them has. Numbers may be doubles: whatever has 64
-- bits is kept as two halves. Nothing here trusts a byte: what a payload inflates to, how deep and how wide it
-- is, and how many lines one frame adds to the tree are all bounded.

-- Lines one frame may add to the tree; Wireshark gives up on a frame at 1,000,000.
local MAX_LINES_A_FRAME = 200000
-- Bytes that the packets of one frame may inflate to, all together.
local MAX_INFLATED_A_FRAME = 8 * spec.limits.maxInflatedBytes
-- Problems of one payload that are told one by one.
local MAX_PROBLEMS = 50

local HEADER_SIZE = 10
local COMMANDS = { [0] = "request or push", [1] = "reply", [2] = "not found", [3] = "error" }
local SECRET = "(secret)"

----------------------------------------------------------------------------------------------------------------------
-- LZ4

-- A length of 15 goes on in bytes that are added up, the last being below 255. Returns the length and where to go
-- on, or nil at the end of the block.
local function run_length(block, at, length)
    if length < 15 then return length, at end
    while true do
        local byte = block:byte(at)
        if not byte then return nil, at end
        length, at = length + byte, at + 1
        if byte < 255 then return length, at end
    end
end

-- A string of bytes, made in pieces: a call takes only so many arguments.
local function string_of(bytes, size)
    local pieces = {}
    for first = 1, size, 4096 do
        pieces[#pieces + 1] = string.char(table.unpack(bytes, first, math.min(first + 4095, size)))
    end
    return table.concat(pieces)
end

-- What an LZ4 block inflates to, at most `limit` bytes; or nil and why not, in the server's words.
local function inflate(block, limit)
    local damaged, too_long = "not an LZ4 block", string.format("inflates to more than %d bytes", limit)
    local bytes, size, at = {}, 0, 1
    -- Of the last match: where it began in the block and in the output, and where it ended in the output.
    local match_at, match_from, match_to

    while at <= #block do
        local token = block:byte(at)
        local literals, length
        literals, at = run_length(block, at + 1, math.floor(token / 16))
        if not literals or literals > #block - at + 1 then return nil, damaged end
        if size + literals > limit then return nil, too_long end
        for index = at, at + literals - 1 do
            size = size + 1
            bytes[size] = block:byte(index)
        end
        at = at + literals

        if at > #block then
            -- Nothing has one form only.
            if size == 0 and token ~= 0 then return nil, damaged end
            -- The format wants the end to be literals, so that a reader may copy in wide steps before it.
            if match_at and (match_at > #block - 7 or match_from > size - 12 or match_to > size - 5) then
                return nil, damaged
            end
            return string_of(bytes, size)
        end

        local low, high = block:byte(at, at + 1)
        if not high then return nil, damaged end
        local offset = low + high * 256
        if offset == 0 or offset > size then return nil, damaged end
        match_at, match_from = at, size
        length, at = run_length(block, at + 2, token % 16)
        if not length then return nil, damaged end
        length = length + 4
        if size + length > limit then return nil, too_long end
        for index = size + 1, size + length do bytes[index] = bytes[index - offset] end
        size = size + length
        match_to = size
    end
    return nil, damaged
end

----------------------------------------------------------------------------------------------------------------------
-- Numbers of 64 bits as two halves, text

-- The decimal digits of an unsigned number.
local function digits_of(high, low)
    local limbs = { math.floor(high / 65536), high % 65536, math.floor(low / 65536), low % 65536 }
    local groups = {}
    repeat
        local rest, is_zero = 0, true
        for index = 1, 4 do
            local value = rest * 65536 + limbs[index]
            limbs[index] = math.floor(value / 10000)
            rest = value % 10000
            is_zero = is_zero and limbs[index] == 0
        end
        table.insert(groups, 1, string.format(is_zero and "%.0f" or "%04.0f", rest))
    until is_zero
    return table.concat(groups)
end

-- The halves of minus a number.
local function negated(high, low)
    if low == 0 then return (4294967296 - high) % 4294967296, 0 end
    return 4294967295 - high, 4294967296 - low
end

-- The halves of the number a string of at most 19 digits stands for, after a minus sign or not; nil for any other.
local function halves_of(text)
    local sign, digits = text:match("^(%-?)(%d+)$")
    if not digits or #digits > 19 then return nil end
    local high, low = 0, 0
    for digit in digits:gmatch("%d") do
        low = low * 10 + tonumber(digit)
        high = high * 10 + math.floor(low / 4294967296)
        low = low % 4294967296
    end
    local is_negative = sign == "-"
    if high > 2147483648 or high == 2147483648 and (low > 0 or not is_negative) then return nil end
    if is_negative then high, low = negated(high, low) end
    return high, low
end

-- An IEEE 754 number out of its parts; `fraction` is below 1.
local function float_of(is_negative, exponent, fraction, bias)
    local value
    if exponent == 2 * bias + 1 then
        value = fraction == 0 and math.huge or 0 / 0
    elseif exponent == 0 then
        value = fraction * 2.0 ^ (1 - bias)
    else
        value = (1 + fraction) * 2.0 ^ (exponent - bias)
    end
    return is_negative and -value or value
end

-- A decimal with one more in its last digit; nil when there is no room for that.
local function next_decimal(text)
    local digits, exponent = text:match("^([^e]*)(.*)$")
    for at = #digits, 1, -1 do
        local digit = tonumber(digits:sub(at, at))
        if digit == 9 then
            digits = digits:sub(1, at - 1) .. "0" .. digits:sub(at + 1)
        elseif digit then
            return string.format("%s%d%s%s", digits:sub(1, at - 1), digit + 1, digits:sub(at + 1), exponent)
        end
    end
end

-- The shortest decimal that reads as the same float.
local function text_of_float(value)
    if value ~= value then return "nan" end
    if value == math.huge then return "inf" end
    if value == -math.huge then return "-inf" end
    local text
    -- The floats next to 0 have fewer digits.
    local fewest = math.abs(value) < 2.0 ^ -1022 and value ~= 0 and 1 or 15
    for precision = fewest, 17 do
        text = string.format("%." .. precision .. "g", value)
        if tonumber(text) == value then break end
        -- Below a power of two floats lie closer than above it: the nearest decimal may be another one's, the next one not.
        local above = next_decimal(string.format("%." .. precision - 1 .. "e", value))
        if above and tonumber(above) == value then
            text = above
            break
        end
    end
    return text:find("[.e]") and text or text .. ".0"
end

-- How many UTF-16 units a string has; nil if it is not UTF-8.
local function utf16_units(text)
    if not text:find("[\128-\255]") then return #text end
    local units, at = 0, 1
    while at <= #text do
        local first, second = text:byte(at, at + 1)
        local more
        if first < 0x80 then
            more = 0
        elseif first >= 0xC2 and first <= 0xDF then
            more = 1
        elseif first >= 0xE0 and first <= 0xEF then
            more = 2
        elseif first >= 0xF0 and first <= 0xF4 then
            more = 3
        else
            return nil
        end
        if #text - at < more then return nil end
        -- Overlong forms, surrogates, and what is above U+10FFFF.
        if first == 0xE0 and second < 0xA0 or first == 0xED and second > 0x9F
            or first == 0xF0 and second < 0x90 or first == 0xF4 and second > 0x8F then
            return nil
        end
        for index = at + 1, at + more do
            local byte = text:byte(index)
            if byte < 0x80 or byte > 0xBF then return nil end
        end
        units = units + (more == 3 and 2 or 1)
        at = at + more + 1
    end
    return units
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- A text in which no control character is left.
local function escaped(text)
    text = text:gsub('[\0-\31\127"\\]', function(char)
        return ESCAPES[char] or string.format("\\u%04x", char:byte())
    end)
    return (text:gsub("\194([\128-\159])", function(char) return string.format("\\u%04x", char:byte()) end))
end

local function hex_of(bytes)
    return (bytes:gsub(".", function(char) return string.format("%02x", char:byte()) end))
end

----------------------------------------------------------------------------------------------------------------------
-- MessagePack to nodes, held against the schema as it is read

-- The kind of a value by its first byte.
local KINDS = {}
for first = 0x00, 0x7F do KINDS[first] = "integer" end
for first = 0x80, 0x8F do KINDS[first] = "map" end
for first = 0x90, 0x9F do KINDS[first] = "array" end
for first = 0xA0, 0xBF do KINDS[first] = "string" end
for first = 0xC4, 0xC6 do KINDS[first] = "bytes" end
for first = 0xC7, 0xC9 do KINDS[first] = "extension" end
for first = 0xCC, 0xD3 do KINDS[first] = "integer" end
for first = 0xD4, 0xD8 do KINDS[first] = "extension" end
for first = 0xD9, 0xDB do KINDS[first] = "string" end
for first = 0xE0, 0xFF do KINDS[first] = "integer" end
KINDS[0xC0], KINDS[0xC1], KINDS[0xC2], KINDS[0xC3] = "nil", "unused", "boolean", "boolean"
KINDS[0xCA], KINDS[0xCB] = "float", "float"
KINDS[0xDC], KINDS[0xDD], KINDS[0xDE], KINDS[0xDF] = "array", "array", "map", "map"

-- How many bytes behind the first one hold the number or the length.
local WIDTHS = {
    [0xC4] = 1, [0xC5] = 2, [0xC6] = 4, [0xC7] = 1, [0xC8] = 2, [0xC9] = 4, [0xCA] = 4, [0xCB] = 8,
    [0xCC] = 1, [0xCD] = 2, [0xCE] = 4, [0xCF] = 8, [0xD0] = 1, [0xD1] = 2, [0xD2] = 4, [0xD3] = 8,
    [0xD9] = 1, [0xDA] = 2, [0xDB] = 4, [0xDC] = 2, [0xDD] = 4, [0xDE] = 2, [0xDF] = 4,
}

-- How problems call the kinds.
local FOUND = {
    ["nil"] = "nil", boolean = "a boolean", integer = "an integer", float = "a float", string = "a string",
    bytes = "bytes", array = "an array", map = "a map", extension = "an extension", unused = "the byte 0xc1",
}

-- What a type is read from, and how problems call it.
local ID = { name = "an id", integer = true, string = true }
local STRING = { name = "a string", string = true }
local EXPECTED = {
    bool = { name = "a boolean", boolean = true },
    int = { name = "an integer", integer = true },
    ms = { name = "an integer", integer = true },
    double = { name = "a number", float = true, integer = true },
    text = STRING, string = STRING, enum = STRING,
    bytes = { name = "bytes", bytes = true, string = true },
    chatId = ID, userId = ID, messageId = ID,
    list = { name = "an array", array = true },
    map = { name = "a map", map = true }, names = { name = "a map", map = true },
    struct = { name = "a map", map = true },
}

for _, struct in pairs(spec.structs) do
    struct.by_key = {}
    for _, field in ipairs(struct) do
        struct.by_key[field.key] = field
        for _, alias in ipairs(field.aliases or {}) do struct.by_key[alias] = field end
    end
end

-- The name of a type's shape: `list` of `list<T>`, `struct` or `enum` of a name of types.yaml.
local function shape_of(type)
    if type == nil then return nil end
    if spec.structs[type] then return "struct" end
    if spec.enums[type] then return "enum" end
    return spec.composites[type] and spec.composites[type].shape or type
end

-- Ends the reading; `decode` catches it.
local function fail(reader, reason)
    reader.failure = reason
    error(reader, 0)
end

local function fail_truncated(reader)
    local size = #reader.bytes
    fail(reader, string.format("ends after %d byte%s", size, size == 1 and "" or "s"))
end

-- A reason with the path of what is being read, as a server words it.
local function at_path(reader, reason)
    local path = table.concat(reader.path)
    return path == "" and reason or path .. ": " .. reason
end

-- Notes what is wrong with a node; the first is what a server would answer.
local function complain(reader, node, reason)
    local text = at_path(reader, reason)
    reader.problem_count = reader.problem_count + 1
    if reader.problem_count <= MAX_PROBLEMS then
        node.problems = node.problems or {}
        table.insert(node.problems, text)
    end
    reader.first_problem = reader.first_problem or text
end

-- The next bytes as an unsigned number of up to 32 bits, without moving.
local function number_at(reader, at, width)
    if at + width > #reader.bytes then fail_truncated(reader) end
    local number = 0
    for index = at + 1, at + width do number = number * 256 + reader.bytes:byte(index) end
    return number
end

-- The content of a value that is as long as `size` says, and moves behind it.
local function take(reader, size)
    if reader.at + size > #reader.bytes then fail_truncated(reader) end
    local content = reader.bytes:sub(reader.at + 1, reader.at + size)
    reader.at = reader.at + size
    return content
end

local function read_integer(reader, node, first)
    local width = WIDTHS[first]
    local high, low = 0, first
    if not width then
        reader.at = reader.at + 1
        if first >= 0xE0 then high, low = 4294967295, 4294967040 + first end
    else
        local at = reader.at + 1
        if at + width > #reader.bytes then fail_truncated(reader) end
        if width == 8 then
            high, low = number_at(reader, at, 4), number_at(reader, at + 4, 4)
        else
            low = number_at(reader, at, width)
            if first >= 0xD0 and low >= 2 ^ (8 * width - 1) then
                high, low = 4294967295, low + 4294967296 - 2 ^ (8 * width)
            end
        end
        reader.at = at + width
    end
    node.high, node.low = high, low
    if high >= 2147483648 and first ~= 0xCF then
        node.text = "-" .. digits_of(negated(high, low))
    else
        node.text = digits_of(high, low)
        node.is_above_int64 = high >= 2147483648
    end
end

local function read_float(reader, node, first)
    local at, width = reader.at + 1, WIDTHS[first]
    if at + width > #reader.bytes then fail_truncated(reader) end
    local high = number_at(reader, at, 4)
    local is_negative = high >= 2147483648
    high = high % 2147483648
    if width == 4 then
        node.float = float_of(is_negative, math.floor(high / 8388608), high % 8388608 / 8388608, 127)
    else
        local fraction = (high % 1048576 + number_at(reader, at + 4, 4) / 4294967296) / 1048576
        node.float = float_of(is_negative, math.floor(high / 1048576), fraction, 1023)
    end
    node.text = text_of_float(node.float)
    reader.at = at + width
end

-- Reads the header of a string, bytes or an extension, then the content.
local function read_run(reader, node, first)
    local width = WIDTHS[first]
    local size
    if width then
        size = number_at(reader, reader.at + 1, width)
    elseif node.kind == "string" then
        size = first % 32
    else
        size = math.floor(2 ^ (first - 0xD4))
    end
    reader.at = reader.at + 1 + (width or 0)
    if node.kind == "extension" then
        node.extension = number_at(reader, reader.at, 1)
        reader.at = reader.at + 1
    end
    node.content_at = reader.at
    node.value = take(reader, size)
end

-- Enters a map or an array and returns how many entries it has.
local function enter(reader, first, values)
    local width = WIDTHS[first]
    local count = width and number_at(reader, reader.at + 1, width) or first % 16
    reader.at = reader.at + 1 + (width or 0)
    -- No value is shorter than a byte.
    if count * values > #reader.bytes - reader.at then fail_truncated(reader) end
    reader.depth = reader.depth + 1
    if reader.depth > spec.limits.maxDepth then
        fail(reader, string.format("nested deeper than %d", spec.limits.maxDepth))
    end
    reader.elements = reader.elements + count
    if reader.elements > spec.limits.maxElements then
        fail(reader, string.format("more than %d elements", spec.limits.maxElements))
    end
    return count
end

local function over(count, limit_name)
    local limit = limit_name and spec.limits[limit_name]
    return limit and count > limit and limit
end

-- The limit of the items of a list or map of a field; what lies inside it has the next one.
local function over_items(count, field)
    return over(count, field.limitItems and field.limitItems[1])
end

-- The field as it holds for what lies in its list or map.
local function inner_of(field)
    if not field.limitItems then return field end
    if not field.inner then
        local inner = {}
        for name, value in pairs(field) do inner[name] = value end
        inner.limitItems = field.limitItems[2] and { table.unpack(field.limitItems, 2) } or nil
        field.inner = inner
    end
    return field.inner
end

-- What the schema says against a string; the checks come in the server's order.
local function check_string(reader, node, shape, type, field)
    local size = #node.value
    if shape == "bytes" then
        local limit = over(size, field.limitBytes)
        if limit then complain(reader, node, string.format("%d bytes, limit %d", size, limit)) end
        return
    end
    if shape == "chatId" or shape == "userId" or shape == "messageId" then
        node.high, node.low = halves_of(node.value)
        if not node.high then complain(reader, node, "expected an id, found a string that is not one") end
        return
    end
    local limit = over(size, shape == "enum" and "maxShortStringBytes" or field.limitBytes)
    if limit then
        complain(reader, node, string.format("%d bytes, limit %d", size, limit))
        return
    end
    local units = utf16_units(node.value)
    if not units then
        complain(reader, node, "not valid UTF-8")
        return
    end
    limit = over(units, field.limit)
    if limit then complain(reader, node, string.format("%d UTF-16 units, limit %d", units, limit)) end
    if shape == "enum" and not spec.enums[type].open and not spec.enums[type].values[node.value] then
        complain(reader, node, 'unknown value "' .. node.value .. '"')
    end
end

-- The name of a map key for people.
local function name_of_key(node)
    if node.kind == "string" then
        local key = node.value
        if not utf16_units(key) then return "not UTF-8: " .. hex_of(key) end
        -- What would be misread without quotes gets them.
        local is_plain = key ~= "" and not key:find("^ ") and not key:find(" $") and not key:find(": ", 1, true)
        return is_plain and escaped(key) or '"' .. escaped(key) .. '"'
    end
    return node.text or FOUND[node.kind]
end

local read

local function new_child(parent, name, from)
    local child = { name = name, from = from, at = from }
    table.insert(parent.children, child)
    return child
end

-- Reads a value under a step of the path.
local function read_at(reader, node, step, type, field)
    table.insert(reader.path, "/" .. step)
    read(reader, node, type, field)
    table.remove(reader.path)
end

local function read_struct(reader, node, type, count)
    local struct = spec.structs[type]
    local seen = {}
    for _ = 1, count do
        local from = reader.at
        local key = {}
        local child = new_child(node, "?", from)
        local checked = reader.checks_text
        reader.checks_text = false
        read(reader, key)
        reader.checks_text = checked
        child.name = name_of_key(key)
        local name = key.kind == "string" and key.value or nil
        local field = name and struct.by_key[name]
        child.key, child.field = name, field
        if not field then
            child.is_unknown = true
            child.is_secret = name ~= nil and spec.sensitive[name]
            read(reader, child)
        else
            child.is_secret = field.sensitive
            local first = reader.bytes:byte(reader.at + 1)
            if seen[field.key] then
                table.insert(reader.path, "/" .. field.key)
                complain(reader, child, "duplicate key")
                table.remove(reader.path)
                read(reader, child)
            elseif first == 0xC0 and not field.required then
                read(reader, child)
            else
                read_at(reader, child, field.key, field.type, field)
            end
            seen[field.key] = true
        end
    end
    for _, field in ipairs(struct) do
        if field.required and not seen[field.key] then
            table.insert(reader.path, "/" .. field.key)
            complain(reader, node, "missing")
            table.remove(reader.path)
        end
    end
end

-- Reads a map keyed by ids or by names.
local function read_keyed(reader, node, composite, field, count)
    local key_type = composite.key or "string"
    local key_field = composite.key and {} or { limitBytes = "maxShortStringBytes" }
    local limit = over_items(count, field)
    if limit then complain(reader, node, string.format("%d items, limit %d", count, limit)) end
    for _ = 1, count do
        local from = reader.at
        local key = {}
        local child = new_child(node, "?", from)
        read(reader, key, key_type, key_field)
        child.name = name_of_key(key)
        child.problems = key.problems
        child.field, child.is_secret = field, field.sensitive
        read_at(reader, child, composite.key and key.text or key.value or child.name, composite.of, inner_of(field))
    end
end

local function read_array(reader, node, first, shape, type, field)
    local count = enter(reader, first, 1)
    node.children, node.count = {}, count
    local item_type
    if shape == "list" then
        local limit = over_items(count, field)
        if limit then complain(reader, node, string.format("%d items, limit %d", count, limit)) end
        item_type = spec.composites[type].of
    end
    for index = 0, count - 1 do
        local child = new_child(node, string.format("%d", index), reader.at)
        child.field = node.field
        if item_type then
            read_at(reader, child, child.name, item_type, inner_of(field))
        else
            read(reader, child)
        end
    end
    reader.depth = reader.depth - 1
end

local function read_map(reader, node, first, shape, type, field)
    local count = enter(reader, first, 2)
    node.children, node.count = {}, count
    if shape == "struct" then
        read_struct(reader, node, type, count)
    elseif shape == "map" or shape == "names" then
        read_keyed(reader, node, spec.composites[type], field, count)
    else
        for _ = 1, count do
            local from = reader.at
            local key = {}
            local child = new_child(node, "?", from)
            local kind_of_key = KINDS[reader.bytes:byte(reader.at + 1)]
            if reader.levels and kind_of_key and kind_of_key ~= "string" then
                complain(reader, child, "expected a string as a key, found " .. FOUND[kind_of_key])
            end
            read(reader, key)
            child.name = name_of_key(key)
            child.key = key.kind == "string" and key.value or nil
            child.is_secret = child.key ~= nil and spec.sensitive[child.key]
            read(reader, child)
        end
    end
    reader.depth = reader.depth - 1
end

-- Reads one value into `node`. Without a type nothing is expected of it.
function read(reader, node, type, field)
    local shape = shape_of(type)
    if shape == "packed" then
        local checked = reader.checks_text
        reader.checks_text = true
        read(reader, node, spec.composites[type].of, field)
        reader.checks_text = checked
        return
    end
    if shape == "any" then
        local checked, levels, from = reader.checks_text, reader.levels, reader.at
        reader.checks_text = true
        -- What is passed on has a limit, and is what every client can decode.
        reader.levels = field and field.limitBytes and spec.limits.maxAnyDepth
        read(reader, node)
        reader.checks_text, reader.levels = checked, levels
        local limit = field and over(reader.at - from, field.limitBytes)
        if limit then complain(reader, node, string.format("%d bytes, limit %d", reader.at - from, limit)) end
        return
    end

    node.at = reader.at
    local first = reader.bytes:byte(reader.at + 1)
    if not first then fail_truncated(reader) end
    local kind = KINDS[first]
    node.kind = kind
    if shape and not EXPECTED[shape][kind] then
        complain(reader, node, "expected " .. EXPECTED[shape].name .. ", found " .. FOUND[kind])
        shape = nil
    end

    if kind == "nil" or kind == "boolean" then
        reader.at = reader.at + 1
        node.text = kind == "nil" and "nil" or first == 0xC3 and "true" or "false"
    elseif kind == "integer" then
        read_integer(reader, node, first)
        if (shape and shape ~= "double" or reader.levels) and node.is_above_int64 then
            complain(reader, node, "an integer above 9223372036854775807")
        end
        node.is_time = shape == "ms"
    elseif kind == "float" then
        read_float(reader, node, first)
    elseif kind == "string" then
        read_run(reader, node, first)
        if shape then
            check_string(reader, node, shape, type, field)
        elseif reader.checks_text and not utf16_units(node.value) then
            complain(reader, node, "not valid UTF-8")
        end
    elseif kind == "bytes" then
        read_run(reader, node, first)
        local limit = shape and over(#node.value, field.limitBytes)
        if limit then complain(reader, node, string.format("%d bytes, limit %d", #node.value, limit)) end
    elseif kind == "extension" then
        if reader.levels then complain(reader, node, "an extension, which clients cannot read") end
        read_run(reader, node, first)
    elseif kind == "array" or kind == "map" then
        local levels = reader.levels
        if levels then
            if levels < 1 then
                complain(reader, node, "nested deeper than " .. spec.limits.maxAnyDepth)
            end
            reader.levels = levels - 1
        end
        if kind == "array" then
            read_array(reader, node, first, shape, type, field)
        else
            read_map(reader, node, first, shape, type, field)
        end
        reader.levels = levels
    else
        fail(reader, "the byte 0xc1 is not MessagePack")
    end
    node.stop = reader.at
end

-- Fails if bytes are left.
local function expect_end(reader)
    local left = #reader.bytes - reader.at
    if left > 0 then fail(reader, string.format("%d byte%s after the payload", left, left == 1 and "" or "s")) end
end

-- Reads a payload as a struct of the specification, or as anything when `type` is nil.
--
-- Returns the node of the payload and the reader, which knows `failure` (why it could not be read to its end)
-- and `first_problem` (what a server would answer).
local function decode(bytes, type)
    local reader = { bytes = bytes, at = 0, depth = 0, elements = 0, path = {}, problem_count = 0 }
    local node = { name = "Payload", from = 0, at = 0 }
    local ok, caught = pcall(function()
        if #bytes == 0 or bytes == "\xC0" then
            node.kind, node.children, node.count, node.stop = "map", {}, 0, 0
            if type then read_struct(reader, node, type, 0) end
            return
        end
        local first = bytes:byte(1)
        if KINDS[first] == "extension" and number_at(reader, 1 + (WIDTHS[first] or 0), 1) == 1 then
            -- An extension of type 1 that is all there is: MessagePack in MessagePack.
            local outer = {}
            read(reader, outer)
            expect_end(reader)
            reader.at = outer.content_at
        end
        read(reader, node, type, {})
        expect_end(reader)
    end)
    if not ok then
        if caught ~= reader then error(caught, 0) end
        reader.failure = at_path(reader, reader.failure)
        reader.first_problem = reader.first_problem or reader.failure
    end
    return node, reader
end

-- What a value is for people; nil for what is looked into.
local function text_of(node, shows_secrets)
    if node.is_secret and not shows_secrets then return SECRET end
    if not node.stop and not node.children then return "cut short" end
    if node.kind == "string" then
        if not utf16_units(node.value) then return "not UTF-8: " .. hex_of(node.value) end
        return '"' .. escaped(node.value) .. '"'
    end
    if node.kind == "bytes" then return "bytes " .. hex_of(node.value) end
    if node.kind == "extension" then
        return string.format("extension %d: %s", node.extension, hex_of(node.value))
    end
    if node.kind == "map" then return string.format("%d key%s", node.count, node.count == 1 and "" or "s") end
    if node.kind == "array" then return string.format("%d item%s", node.count, node.count == 1 and "" or "s") end
    if node.is_time and node.high < 65536 and (node.high > 0 or node.low > 0) then
        local milliseconds = node.high * 4294967296 + node.low
        -- Up to the end of the year 9999, which every system can write.
        if milliseconds < 253402300800000 then
            return string.format("%s (%s.%03.0f UTC)", node.text,
                os.date("!%Y-%m-%d %H:%M:%S", math.floor(milliseconds / 1000)), milliseconds % 1000)
        end
    end
    return node.text
end

----------------------------------------------------------------------------------------------------------------------
-- Wireshark

local tambour = Proto("tambour", "Tambour")

local opcode_names = {}
for number, opcode in pairs(spec.opcodes) do opcode_names[number] = opcode.name end

local fields = {
    ver = ProtoField.uint8("tambour.ver", "Version"),
    cmd = ProtoField.uint8("tambour.cmd", "Command", base.DEC, COMMANDS),
    seq = ProtoField.uint16("tambour.seq", "Sequence"),
    opcode = ProtoField.uint16("tambour.opcode", "Opcode", base.DEC, opcode_names),
    flags = ProtoField.uint8("tambour.flags", "Flags"),
    length = ProtoField.uint24("tambour.length", "Length"),
    kind = ProtoField.string("tambour.kind", "Kind"),
    inflated = ProtoField.uint32("tambour.inflated", "Inflated length"),
    payload = ProtoField.none("tambour.payload", "Payload"),
    problem = ProtoField.string("tambour.problem", "Problem"),
    error = ProtoField.string("tambour.error", "Error"),
    error_class = ProtoField.string("tambour.error.class", "Class"),
    error_retry = ProtoField.string("tambour.error.retry", "Retry"),
    request_in = ProtoField.framenum("tambour.request_in", "Request in", base.NONE, frametype.REQUEST),
    reply_in = ProtoField.framenum("tambour.reply_in", "Reply in", base.NONE, frametype.RESPONSE),
    response_time = ProtoField.relative_time("tambour.response_time", "Response time"),
}

local experts = {
    header = ProtoExpert.new("tambour.expert.header", "Not a Tambour packet",
        expert.group.MALFORMED, expert.severity.ERROR),
    malformed = ProtoExpert.new("tambour.expert.malformed", "The payload cannot be read",
        expert.group.MALFORMED, expert.severity.ERROR),
    refused = ProtoExpert.new("tambour.expert.refused", "Not what the specification asks for",
        expert.group.PROTOCOL, expert.severity.WARN),
    unknown_key = ProtoExpert.new("tambour.expert.unknown_key", "A key the specification does not know",
        expert.group.UNDECODED, expert.severity.CHAT),
    unknown_opcode = ProtoExpert.new("tambour.expert.unknown_opcode", "An opcode the specification does not know",
        expert.group.UNDECODED, expert.severity.NOTE),
    error = ProtoExpert.new("tambour.expert.error", "An error reply",
        expert.group.RESPONSE_CODE, expert.severity.WARN),
    hard_error = ProtoExpert.new("tambour.expert.hard_error", "An error that closes the connection",
        expert.group.RESPONSE_CODE, expert.severity.ERROR),
    cut = ProtoExpert.new("tambour.expert.cut", "Not everything is shown",
        expert.group.UNDECODED, expert.severity.NOTE),
}

-- The kind of filter field a type asks for; nil for containers and for what can be anything.
local FIELD_KINDS = {
    bool = "bool", int = "int64", ms = "int64", chatId = "int64", userId = "int64", messageId = "int64",
    double = "double", text = "string", string = "string", enum = "string", bytes = "bytes",
}

local function field_kind_of(field)
    local type = field.type
    while spec.composites[type] do type = spec.composites[type].of end
    -- What is masked is shown as text.
    return field.sensitive and "string" or FIELD_KINDS[shape_of(type)]
end

-- A filter field for each key of the specification: `tambour.payload.chatId`. A key that has one type here and
-- another there is a string.
local key_kinds, key_fields = {}, {}
for _, struct in pairs(spec.structs) do
    for _, field in ipairs(struct) do
        local kind = field_kind_of(field)
        local known = key_kinds[field.key]
        key_kinds[field.key] = known and kind and known ~= kind and "string" or kind or known or false
    end
end
local key_names = {}
for key in pairs(key_kinds) do table.insert(key_names, key) end
table.sort(key_names)
for _, key in ipairs(key_names) do
    local name = "tambour.payload." .. key:gsub("[^%w_.-]", "_")
    key_fields[key] = ProtoField[key_kinds[key] or "none"](name, key)
end

do
    local all = {}
    for _, field in pairs(fields) do table.insert(all, field) end
    for _, key in ipairs(key_names) do table.insert(all, key_fields[key]) end
    tambour.fields = all
    local complaints = {}
    for _, one in pairs(experts) do table.insert(complaints, one) end
    tambour.experts = complaints
end

tambour.prefs.ports = Pref.range("TCP ports", "7770", "Ports on which Tambour servers listen.", 65535)
tambour.prefs.show_secrets = Pref.bool("Show secrets", false,
    "Show tokens, codes and phone numbers in the tree instead of " .. SECRET .. ".")
tambour.prefs.max_frame_bytes = Pref.uint("Longest payload in bytes", spec.limits.maxFrameBytes,
    "A header that announces more is not taken for one; a server that was given another limit may allow it.")

local stream_of_tcp = Field.new("tcp.stream")

-- Of the capture that is open: requests that wait for a reply, what is known of each packet, and which port of a
-- stream is the server's.
local waiting, packets, server_ports = {}, {}, {}

function tambour.init()
    waiting, packets, server_ports = {}, {}, {}
end

local function stream_number()
    -- The innermost one, should there be a tunnel.
    local found = { stream_of_tcp() }
    return #found > 0 and found[#found].value or 0
end

-- What a packet is: `request`, `push`, `reply`, `not found` or `error`.
local function kind_of(header, pinfo)
    if header.cmd == 1 then return "reply" end
    if header.cmd == 2 then return "not found" end
    if header.cmd == 3 then return "error" end
    local opcode = spec.opcodes[header.opcode]
    local direction = opcode and opcode.direction or "both"
    if direction == "clientToServer" then return "request" end
    if direction == "serverToClient" then return "push" end
    -- Both sides send it: the port tells, where there are ports.
    local port = server_ports[stream_number()] or pinfo.match
    return port == pinfo.dst_port and port ~= pinfo.src_port and "request" or "push"
end

-- What is known of a packet: its kind and, once it is known, the frame of its counterpart and the time between.
local function knowledge_of(header, pinfo, ordinal)
    local key = pinfo.number .. ":" .. ordinal
    local known = packets[key]
    if known then return known end
    known = { kind = kind_of(header, pinfo), frame = pinfo.number, time = pinfo.rel_ts }
    packets[key] = known

    local is_request = known.kind == "request"
    local stream = stream_number()
    local opcode = spec.opcodes[header.opcode]
    if opcode and opcode.direction ~= "both" then
        server_ports[stream] = is_request and pinfo.dst_port or pinfo.src_port
    end
    local client_port = is_request and pinfo.src_port or pinfo.dst_port
    local exchange = string.format("%d:%d:%d:%d", stream, client_port, header.seq, header.opcode)
    local queue = waiting[exchange]
    if is_request then
        if not queue then
            queue = {}
            waiting[exchange] = queue
        end
        table.insert(queue, known)
    elseif known.kind ~= "push" and queue then
        -- Two requests of one number are answered in their order.
        local request = table.remove(queue, 1)
        if #queue == 0 then waiting[exchange] = nil end
        request.reply = known
        known.request = request
    end
    return known
end

-- What the packets of one frame have used up already; Wireshark clears it before it dissects a frame again.
local function spent(pinfo, name)
    return tonumber(pinfo.private["tambour_" .. name]) or 0
end

local function spend(pinfo, name, amount)
    pinfo.private["tambour_" .. name] = string.format("%d", spent(pinfo, name) + amount)
end

-- A text that Wireshark does not take for ended at a NUL.
local function without_nul(text)
    return (text:gsub("\0", "\\u0000"))
end

-- The value of a node for a filter field of a kind; nil if it does not fit.
local function field_value(node, kind)
    if not node.stop then return nil end
    if node.is_secret and not tambour.prefs.show_secrets then return kind == "string" and SECRET or nil end
    if kind == "string" then
        if node.kind == "string" then return utf16_units(node.value) and without_nul(node.value) or nil end
        return not node.children and node.text or nil
    end
    if kind == "int64" then
        if node.high and not node.is_above_int64 then return Int64.new(node.low, node.high) end
    elseif kind == "bool" then
        if node.kind == "boolean" then return node.text == "true" end
    elseif kind == "double" then
        if node.kind == "float" then return node.float end
        if node.kind == "integer" then return tonumber(node.text) end
    elseif kind == "bytes" then
        if node.kind == "bytes" then return ByteArray.new(node.value, true) end
    end
    return nil
end

-- Adds a remark to a line; it takes five lines of its own.
local function remark(item, kind, text, view)
    view.lines = view.lines - 5
    if view.lines <= 0 then
        view.is_cut = true
    else
        item:add_proto_expert_info(kind, text)
    end
end

-- Adds a node and what is in it to the tree. `view` is where it is shown: the bytes, and the lines that are left.
local function show(node, tree, view)
    if view.lines <= 0 then
        view.is_cut = true
        return
    end
    view.lines = view.lines - 1
    local range = view.empty
    if view.tvb then
        local stop = node.stop or view.tvb:len()
        range = view.tvb(node.from, math.max(stop - node.from, 0))
    end
    local label = node.name .. ": " .. text_of(node, tambour.prefs.show_secrets)
    local key = node.field and node.field.key
    local kind = key and key_kinds[key]
    local item
    if node == view.root then
        item = tree:add(fields.payload, range)
    elseif node.children and not (node.is_secret and not tambour.prefs.show_secrets) then
        item = kind == false and node.key and tree:add(key_fields[key], range) or tree:add(range, label)
    else
        local value = kind and field_value(node, kind)
        if value ~= nil and value ~= false or value == false and kind == "bool" then
            item = tree:add(key_fields[key], range, value)
        else
            item = tree:add(range, label)
        end
    end
    item:set_text(label)

    if node.is_unknown and view.problems > 0 then
        view.problems = view.problems - 1
        remark(item, experts.unknown_key, "unknown key " .. node.name, view)
    end
    for _, text in ipairs(node.problems or {}) do
        remark(item, experts.refused, text, view)
    end
    if node.is_secret and not tambour.prefs.show_secrets then return end
    for _, child in ipairs(node.children or {}) do show(child, item, view) end
end

-- The struct of a packet's payload; nil if the specification has none.
local function struct_of(header, kind)
    if kind == "error" then return spec.error_payload end
    local opcode = spec.opcodes[header.opcode]
    return opcode and opcode[kind]
end

-- Shows an error by its code: class, retry and meaning.
local function show_error(node, tree, range)
    local code
    for _, child in ipairs(node.children or {}) do
        if child.key == "error" and child.kind == "string" and child.stop and utf16_units(child.value) then
            code = child.value
        end
    end
    if not code then return nil end
    local known = spec.errors[code]
    local item = tree:add(fields.error, range, without_nul(code))
    item:set_text("Error: " .. escaped(code)):set_generated()
    if known then
        item:add(fields.error_class, range, known.class):set_generated()
        item:add(fields.error_retry, range, known.retry):set_generated()
    end
    item:add_proto_expert_info(known and known.class == "hard" and experts.hard_error or experts.error,
        escaped(code) .. ": " .. (known and known.when or "a code the specification does not know"))
    return escaped(code)
end

-- The payload as it was before it was compressed, with the buffer that holds it if it has a byte; nil and why not.
local function plain_payload(header, tvb, pinfo)
    if header.length == 0 and header.flags == 0 then return "", nil end
    if header.flags == 0 then return tvb:raw(HEADER_SIZE, header.length), tvb(HEADER_SIZE, header.length):tvb() end
    if header.flags == 255 then return nil, "zstd is not supported" end
    local bytes, reason = inflate(tvb:raw(HEADER_SIZE, header.length), spec.limits.maxInflatedBytes)
    if not bytes then return nil, reason end
    spend(pinfo, "inflated", #bytes)
    return bytes, #bytes > 0 and ByteArray.new(bytes, true):tvb("Inflated payload") or nil
end

-- Adds the payload to the tree; returns the code of an error.
local function show_payload(header, known, tvb, pinfo, tree)
    if tvb:len() - HEADER_SIZE < header.length then
        tree:add_proto_expert_info(experts.cut, "the capture holds only a part of the payload")
        return nil
    end
    local wire = tvb(HEADER_SIZE, header.length)
    local lines = MAX_LINES_A_FRAME - spent(pinfo, "lines")
    if lines <= 0 or spent(pinfo, "inflated") > MAX_INFLATED_A_FRAME then
        tree:add_proto_expert_info(experts.cut, "too much in one frame: the payload is not shown")
        return nil
    end
    local bytes, source = plain_payload(header, tvb, pinfo)
    if not bytes then
        tree:add(fields.problem, wire, source):set_generated()
        tree:add_proto_expert_info(experts.malformed, source)
        return nil
    end
    if header.flags ~= 0 then tree:add(fields.inflated, wire, #bytes):set_generated() end
    local node, reader = decode(bytes, struct_of(header, known.kind))
    if reader.first_problem then
        tree:add(fields.problem, wire, without_nul(reader.first_problem)):set_generated()
    end
    local view = { tvb = source, empty = wire, root = node, lines = lines, problems = MAX_PROBLEMS }
    show(node, tree, view)
    if reader.failure then tree:add_proto_expert_info(experts.malformed, reader.failure) end
    spend(pinfo, "lines", lines - view.lines)
    if reader.problem_count > MAX_PROBLEMS then
        tree:add_proto_expert_info(experts.cut,
            string.format("%d more problems are not shown", reader.problem_count - MAX_PROBLEMS))
    end
    if view.is_cut then tree:add_proto_expert_info(experts.cut, "too much in one frame: the rest is not shown") end
    if known.kind == "error" then return show_error(node, tree, wire) end
    return nil
end

-- Adds what the header says, and what it belongs to.
local function show_header(header, known, tvb, tree)
    tree:add(fields.ver, tvb(0, 1))
    tree:add(fields.cmd, tvb(1, 1))
    tree:add(fields.seq, tvb(2, 2))
    tree:add(fields.opcode, tvb(4, 2))
    local flags = tree:add(fields.flags, tvb(6, 1))
    if header.flags == 0 then
        flags:append_text(" (plain)")
    else
        flags:append_text(header.flags == 255 and " (zstd)" or " (LZ4 block, at most that many times as long)")
    end
    tree:add(fields.length, tvb(7, 3))
    tree:add(fields.kind, tvb(1, 1), known.kind):set_generated()
    if not spec.opcodes[header.opcode] then
        tree:add_proto_expert_info(experts.unknown_opcode, string.format("unknown opcode %d", header.opcode))
    end
    if known.reply then tree:add(fields.reply_in, tvb(0, 0), known.reply.frame):set_generated() end
    if known.request then
        tree:add(fields.request_in, tvb(0, 0), known.request.frame):set_generated()
        local seconds = known.time - known.request.time
        -- Rounded to what captures resolve.
        local nanoseconds = math.floor(math.abs(seconds) * 1e9 + 0.5)
        local sign = seconds < 0 and -1 or 1
        local time = NSTime.new(sign * math.floor(nanoseconds / 1e9), sign * (nanoseconds % 1000000000))
        tree:add(fields.response_time, tvb(0, 0), time):set_generated()
    end
end

local function add_info(pinfo, ordinal, text)
    if ordinal == 0 then
        pinfo.cols.info:set(text)
    else
        pinfo.cols.info:append("; " .. text)
    end
end

-- Why ten bytes are not the header of a packet; nil if they are.
local function header_problem(ver, cmd, length)
    if not spec.versions[ver] then return string.format("version %d", ver) end
    if not COMMANDS[cmd] then return string.format("command %d", cmd) end
    if length > tambour.prefs.max_frame_bytes then
        return string.format("a payload of %d bytes, limit %d", length, tambour.prefs.max_frame_bytes)
    end
    return nil
end

-- How long the packet that begins here is. What is no packet is all there is: nobody knows where the next begins.
local function length_of_packet(tvb, _, offset)
    -- Less than a header comes only where nothing is put together again.
    if tvb:len() - offset < HEADER_SIZE then return HEADER_SIZE end
    local length = tvb(offset + 7, 3):uint()
    if header_problem(tvb(offset, 1):uint(), tvb(offset + 1, 1):uint(), length) then
        return tvb:len() - offset
    end
    return HEADER_SIZE + length
end

local function dissect_packet(tvb, pinfo, root)
    local ordinal = spent(pinfo, "packets")
    spend(pinfo, "packets", 1)
    spend(pinfo, "lines", 20)
    pinfo.cols.protocol = "Tambour"
    local tree = root:add(tambour, tvb())
    if tvb:len() < HEADER_SIZE then
        tree:append_text(", cut short")
        tree:add_proto_expert_info(experts.cut, "the capture holds only a part of the header")
        add_info(pinfo, ordinal, "part of a header")
        return tvb:len()
    end
    local header = {
        cmd = tvb(1, 1):uint(), seq = tvb(2, 2):uint(), opcode = tvb(4, 2):uint(),
        flags = tvb(6, 1):uint(), length = tvb(7, 3):uint(),
    }
    local problem = header_problem(tvb(0, 1):uint(), header.cmd, header.length)
    if problem then
        tree:append_text(", " .. problem)
        tree:add_proto_expert_info(experts.header, problem)
        add_info(pinfo, ordinal, "not a packet: " .. problem)
        return tvb:len()
    end

    local known = knowledge_of(header, pinfo, ordinal)
    local opcode = spec.opcodes[header.opcode]
    local title = string.format("%s %s, seq %d",
        opcode and opcode.name or string.format("opcode %d", header.opcode), known.kind, header.seq)
    show_header(header, known, tvb, tree)
    local code = show_payload(header, known, tvb, pinfo, tree)
    if code then title = title .. ": " .. code end
    tree:append_text(string.format(", %s, %d bytes", title, tvb:len()))
    add_info(pinfo, ordinal, title)
    return tvb:len()
end

function tambour.dissector(tvb, _, tree)
    dissect_tcp_pdus(tvb, tree, HEADER_SIZE, length_of_packet, dissect_packet)
    return tvb:len()
end

-- How every client begins: with a plain request that is legal before SESSION_INIT, short, and with a map whose first
-- key is a string. That is 8 bytes which must be right. Each row says where a number is, its width, and what it may be.
local OPENING = {
    { 0, 1, function(ver) return spec.versions[ver] end },
    { 1, 1, function(cmd) return cmd == 0 end },
    { 4, 2, function(opcode) return spec.opcodes[opcode] and spec.opcodes[opcode].opens end },
    { 6, 1, function(flags) return flags == 0 end },
    { 7, 3, function(length) return length > 1 and length <= spec.limits.maxFrameBytesBeforeLogin end },
    { HEADER_SIZE, 1, function(map) return map > 0x80 and map <= 0x8F end },
    { HEADER_SIZE + 1, 1, function(key) return key > 0xA0 and key <= 0xBF end },
}

-- Whether bytes are how a client begins; nil while there are too few to tell.
local function opens(tvb)
    for _, row in ipairs(OPENING) do
        local at, width, is_right = row[1], row[2], row[3]
        if tvb:len() < at + width then return nil end
        if not is_right(tvb(at, width):uint()) then return false end
    end
    return true
end

local next_number_of_tcp = Field.new("tcp.nxtseq")

-- Whether bytes are all that this side of the connection has sent so far.
local function is_beginning(tvb)
    local found = { next_number_of_tcp() }
    return #found > 0 and found[#found].value == tvb:len() + 1
end

-- Takes a connection on any port if it begins as every client begins. Too few bytes to tell are kept, and come again
-- with the next segment: whatever they turn out to be then, only at the beginning is anything kept.
local function dissect_heuristically(tvb, pinfo, tree)
    local is_ours = opens(tvb)
    if is_ours == nil and tvb:len() > 0 and pinfo.can_desegment > 0 and is_beginning(tvb) then
        pinfo.desegment_offset = 0
        pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
        return true
    end
    if not is_ours then return false end
    pinfo.conversation = tambour
    tambour.dissector(tvb, pinfo, tree)
    return true
end

local tcp_ports = DissectorTable.get("tcp.port")
local registered_ports

local function register_ports()
    if registered_ports then tcp_ports:remove(registered_ports, tambour) end
    registered_ports = tambour.prefs.ports
    tcp_ports:add(registered_ports, tambour)
end

function tambour.prefs_changed() register_ports() end

register_ports()
-- For a proxy that takes TLS off: Decode As, once Wireshark has the keys.
DissectorTable.get("tls.port"):add_for_decode_as(tambour)
tambour:register_heuristic("tcp", dissect_heuristically)
