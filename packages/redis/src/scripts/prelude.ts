/** Milliseconds. No process uses a time that is so far away. */
export const FAR = 1e13

/**
 * The beginning of both scripts: the request, the time, the handling of values that can't be read, and the process's sequence number in
 * this shard.
 *
 * Any client with write access to the server may have written any value, and a script that ends with an error has done half of its work. So
 * no value may raise an error. A value that no script of this layout wrote is deleted and counts as lost. Its name is part of the reply.
 *
 * Making a function costs a script as much as a few Redis commands, and more if there are many functions. So rarely needed functions are
 * made where they are used.
 */
export const PRELUDE: string = [
  `
local request = cjson.decode(ARGV[1])
local call = redis.call
local clock = call('TIME')
local shown = clock[1] * 1000 + clock[2] / 1000`,
  // After this server's clock has jumped, the processes use another time for a while.
  `local now = request.now or shown
local LOG, ENDS, KEEP, HOT, HAND, RESETS = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
`,
  // The names of values that can't be read. Limited, so that a reply stays short.
  `local lost = {}`,
  // Whether blocks are lost. Then the processes send the blocks that they have again, as after any loss of data.
  `local blocksLost = false
`,
  // Notes a value that can't be read. If its key must be deleted, a command that is needed anyway does it, so that no further permission is
  // needed.
  `local function lose(name, key)
  if #lost < 50 then lost[#lost + 1] = string.sub(name, 1, 300) end
  if key == LOG or key == ENDS or key == KEEP or key == HAND or key == RESETS then`,
  // These keys are one list. A part of it alone could show blocks that were already lifted.
  `    for _, part in ipairs({ LOG, ENDS, KEEP, HAND, RESETS }) do call('PEXPIRE', part, 0) end
    blocksLost = true
  elseif key then
    call('PEXPIRE', key, 0)
  end
end
`,
  // Runs a command on a key that may have another type. In that case the key is lost, and the command finds nothing.
  `local function sound(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, 'WRONGTYPE', 1, true) then lose(key, key) end
  return call(command, key, ...)
end
`,
  // The sequence number, by which a process notices that an acknowledged write is missing. It is the first write of the script, so that a
  // full server or a replica rejects the whole script and not a part.
  `local before = redis.pcall('GET', KEYS[1])
if type(before) == 'table' and not string.find(before.err, 'WRONGTYPE', 1, true) then before = call('GET', KEYS[1]) end
local known = type(before) == 'string' and #before <= 15 and string.find(before, '^%d+$') and tonumber(before) or nil`,
  // A number far above the process's own would hide losses.
  `if known and known > request.sequence + 1e6 then known = nil end
if before and not known then lose(KEYS[1]) end
call('SET', KEYS[1], string.format('%.0f', math.max(known or 0, request.sequence)), 'PX', request.sequenceTtl)
`,
  // Lua's own conversion keeps only 14 digits in texts. Redis converts arguments of commands exactly.
  `local function number(value)
  if value % 1 == 0 and value < 1e14 and value > -1e14 then return value end
  return string.format('%.17g', value)
end

local function expireAtLeast(key, ttl)
  if call('PTTL', key) < ttl then call('PEXPIRE', key, math.ceil(ttl)) end
end
`,
  // The list of blocks, for scripts that need it.
  `local function blockList()
  local list = {}

  function list.remove(member)
    for _, part in ipairs({ LOG, ENDS, KEEP, HAND, RESETS }) do sound('ZREM', part, member) end
  end

  function list.byHand(member)
    return sound('ZSCORE', HAND, member) and true or false
  end
`,
  // The last reset of a key, or 0.
  `  function list.epoch(member)
    local text = sound('ZSCORE', RESETS, member)
    if not text then return 0 end
    local epoch = tonumber(text)
    if epoch >= 1 and epoch <= 2 ^ 53 and epoch % 1 == 0 then return epoch end
    lose(RESETS .. ' ' .. member)
    call('ZREM', RESETS, member)
    return 0
  end
`,
  // The remaining block, as others receive it: 'left', or 'left|1 if it is manual|the last reset'.
  `  function list.text(member, left, byHand, epoch)
    if not byHand and epoch == 0 then return number(left) end
    return number(left) .. '|' .. (byHand and left > 0 and '1' or '') .. '|' .. (epoch > 0 and number(epoch) or '')
  end
`,
  // Removes blocks whose changes no longer need to be sent.
  `  function list.forget()
    local over = sound('ZRANGEBYSCORE', KEEP, '-inf', number(now), 'LIMIT', 0, 100)
    for _, member in ipairs(over) do list.remove(member) end
  end
`,
  // The remaining time of a block. A block with an impossible end is lost.
  `  function list.left(member)
    local ends = sound('ZSCORE', ENDS, member)
    if not ends then return 0 end
    local left = tonumber(ends) - now
    if left <= ${FAR} then return math.max(0, left) end
    lose(ENDS .. ' ' .. member)
    list.remove(member)
    blocksLost = true
    return 0
  end
`,
  // The version of the list.
  `  function list.version()
    local version = tonumber(sound('ZSCORE', LOG, '') or 0)
    if version >= 0 and version <= 2 ^ 53 and version % 1 == 0 then return version end
    lose(LOG, LOG)
    return 0
  end

  return list
end

local HOUR = 3600000
`,
].join('\n')

/** Part of a script's reply: the sequence number before this call, or nothing after a loss. */
export const SEQUENCE_BEFORE = "known and not blocksLost and before or ''"
