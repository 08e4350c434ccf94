import { MOST_HOT } from './keys.ts'

/**
 * What both scripts begin with: the request, the time, what is done with values that can't be read, and the node's sequence
 * number in this bucket.
 *
 * Anybody who can write to the server may have put anything anywhere, and a script that ends at an error has half of its
 * work done. So nothing that is read may raise one: a value that no script of this layout wrote is deleted, counts as lost,
 * and its name is part of the reply.
 */
export const PRELUDE: string = `
local request = cjson.decode(ARGV[1])
local call = redis.call
local clock = call('TIME')
local shown = clock[1] * 1000 + clock[2] / 1000
-- After a step of this server's clock the nodes go by another time for a while.
local now = request.now or shown
local LOG, ENDS, KEEP, HOT = KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- Milliseconds: no node asks for anything that is so far away.
local FAR = 1e13

-- The names of what could not be read. A reply must not become long by them.
local lost = {}

local function lose(name)
  if #lost < 50 then lost[#lost + 1] = string.sub(name, 1, 300) end
end

-- Deletes a key by a command that is needed anyway, so that no further permission is.
local function drop(key)
  call('PEXPIRE', key, 0)
end

-- Blocks are gone: nodes that know them send them again, as after any loss of data.
local blocksLost = false

-- The three sets are one list, of which a part alone would tell of blocks that were lifted.
local function loseBlocks(name)
  lose(name)
  for _, key in ipairs({ LOG, ENDS, KEEP }) do drop(key) end
  blocksLost = true
end

local function ofAnotherType(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true)
end

-- A command on a key that may be of another type. Then it is lost, and the command finds nothing.
local function sound(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if ofAnotherType(reply) then
    if key == LOG or key == ENDS or key == KEEP then
      loseBlocks(key)
    else
      lose(key)
      drop(key)
    end
  end
  return call(command, key, ...)
end

-- A whole number as the scripts write it, or nothing.
local function whole(text)
  return text and #text <= 15 and string.find(text, '^%d+$') and tonumber(text) or nil
end

-- Kept, so that a node notices when a write of it that was acknowledged is missing. The first write of the script, so
-- that a server that is full, or a replica, refuses the whole of it and not a part.
local before = redis.pcall('GET', KEYS[1])
if type(before) == 'table' and not ofAnotherType(before) then before = call('GET', KEYS[1]) end
local known = type(before) == 'string' and whole(before) or nil
-- A number far beyond those that the node has reached would hide losses.
if known and known > request.sequence + 1e6 then known = nil end
if before and not known then lose(KEYS[1]) end
call('SET', KEYS[1], string.format('%.0f', math.max(known or 0, request.sequence)), 'PX', request.sequenceTtl)

-- The number before this call; none after a loss.
local function sequenceBefore()
  return known and not blocksLost and before or ''
end

-- In texts, Lua's own conversion keeps 14 digits only. Arguments of commands Redis converts exactly by itself.
local function number(value)
  if value % 1 == 0 and value < 1e14 and value > -1e14 then return value end
  return string.format('%.17g', value)
end

local function expireAtLeast(key, ttl)
  if call('PTTL', key) < ttl then call('PEXPIRE', key, math.ceil(ttl)) end
end

local function removeBlock(member)
  for _, key in ipairs({ KEEP, ENDS, LOG }) do call('ZREM', key, member) end
end

-- A block whose end can't be one.
local function loseBlock(member)
  lose(ENDS .. ' ' .. member)
  removeBlock(member)
  blocksLost = true
end

local function forgetBlocks()
  local over = sound('ZRANGEBYSCORE', KEEP, '-inf', number(now), 'LIMIT', 0, 100)
  for _, member in ipairs(over) do removeBlock(member) end
end

-- For how long a block lasts from now on.
local function leftOf(member)
  local ends = sound('ZSCORE', ENDS, member)
  if not ends then return 0 end
  local left = tonumber(ends) - now
  if left > FAR then
    loseBlock(member)
    return 0
  end
  return math.max(0, left)
end

-- How many keys are marked as hot. Where there are many more than the scripts let there be, somebody else put them there.
local function sizeOfHot()
  local size = sound('ZCARD', HOT)
  if size <= 2 * ${MOST_HOT} then return size end
  lose(HOT)
  drop(HOT)
  return 0
end

-- The version of the block list.
local function versionOfBlocks()
  local version = tonumber(sound('ZSCORE', LOG, '') or 0)
  if version >= 0 and version <= 2 ^ 53 and version % 1 == 0 then return version end
  loseBlocks(LOG)
  return 0
end

local HOUR = 3600000
`
