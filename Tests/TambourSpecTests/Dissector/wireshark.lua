-- Runs the dissector in a plain interpreter, to see that every Lua reads it alike: enough of Wireshark's interface to
-- load it and to print what tshark -V prints. Usage: lua wireshark.lua tambour.lua, with packets in hexadecimal
-- digits, one a line, on the standard input.

local function class(methods, call)
    methods.__index = methods
    methods.__call = call
    return function(object) return setmetatable(object, methods) end
end

-- Buffers

local new_range, new_buffer

local function checked(data, at, size)
    at = at or 0
    size = size or #data - at
    assert(at >= 0 and size >= 0 and at + size <= #data, "Range is out of bounds")
    return data:sub(at + 1, at + size)
end

new_buffer = class({
    len = function(self) return #self.data end,
    raw = function(self, at, size) return checked(self.data, at, size) end,
}, function(self, at, size) return new_range({ data = checked(self.data, at, size) }) end)

new_range = class({
    uint = function(self)
        assert(#self.data >= 1 and #self.data <= 4)
        local number = 0
        for index = 1, #self.data do number = number * 256 + self.data:byte(index) end
        return number
    end,
    tvb = function(self) return new_buffer({ data = self.data }) end,
})

ByteArray = {
    new = function(data, is_raw)
        assert(is_raw)
        return { tvb = function() return new_buffer({ data = data }) end }
    end,
}

-- The tree

local lines

local new_item
new_item = class({
    add = function(self, what, range, value)
        local line = { depth = self.line.depth + 1, text = "" }
        if type(what) == "table" and what.abbreviation then
            assert(getmetatable(range), "no range")
            line.text = what.name .. (value ~= nil and ": " .. tostring(value) or "")
        elseif type(range) == "string" then
            line.text = range
        end
        table.insert(lines, line)
        return new_item({ line = line })
    end,
    set_text = function(self, text) self.line.text = text return self end,
    append_text = function(self, text) self.line.text = self.line.text .. text return self end,
    set_generated = function(self) self.line.text = "[" .. self.line.text .. "]" return self end,
    add_proto_expert_info = function(self, expert, text)
        assert(expert and type(text) == "string")
        table.insert(lines, { depth = self.line.depth + 1, text = "[Expert Info: " .. text .. "]" })
    end,
})

-- What a script declares

base = { DEC = 1, NONE = 0 }
frametype = { REQUEST = 1, RESPONSE = 2 }
expert = {
    group = setmetatable({}, { __index = function() return 1 end }),
    severity = setmetatable({}, { __index = function() return 1 end }),
}
ProtoExpert = { new = function() return {} end }
ProtoField = setmetatable({}, {
    __index = function()
        return function(abbreviation, name) return { abbreviation = abbreviation, name = name } end
    end,
})
Pref = setmetatable({}, { __index = function() return function(_, default) return default end end })
Field = { new = function() return function() end end }
Int64 = {
    new = function(low, high) return string.format("%.0f:%.0f", high, low) end,
}
NSTime = { new = function(seconds, nanoseconds) return string.format("%d.%09d", seconds, nanoseconds) end }
DissectorTable = {
    get = function() return { add = function() end, add_for_decode_as = function() end } end,
}

local protocol
function Proto(_, name)
    protocol = { abbreviation = "tambour", name = name, prefs = {}, register_heuristic = function() end }
    return protocol
end

local pinfo
function dissect_tcp_pdus(buffer, tree, header_size, length, dissect)
    assert(buffer:len() >= header_size and length(buffer, pinfo, 0) == buffer:len())
    dissect(buffer, pinfo, tree)
end

dofile(arg[1])

local frame = 0
for digits in io.lines() do
    frame = frame + 1
    lines = {}
    pinfo = {
        number = frame, rel_ts = frame, src_port = 1, dst_port = 2, match = 0, private = {},
        cols = { info = { set = function() end, append = function() end } },
    }
    local data = digits:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
    protocol.dissector(new_buffer({ data = data }), pinfo, new_item({ line = { depth = -1 } }))
    for _, line in ipairs(lines) do print(string.rep("    ", line.depth) .. line.text) end
end
