import { MOST_HOT } from '../keys/keys.ts'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/** More nodes than any cluster has: there are so many statuses only where somebody else put them. */
const MOST_STATUSES = 4096
/** Bytes. A status has at most 8,192 UTF-16 units. */
const LONGEST_STATUS = 32_768
/** Bytes of all statuses in one reply. */
const LONGEST_STATUSES = 8 * 1024 * 1024
/** Texts about rules that are kept and handed out, bytes of one, and how long it is kept, in milliseconds. */
const MOST_RULES = 64
const LONGEST_RULES = 32_768
const RULES_KEPT = 60_000
/** Bytes of the names of hot keys in one reply: a node that starts does well without the last ones. */
const LONGEST_HOT = 2 * 1024 * 1024
/** Bytes of a policy's and a key's name: 64 K UTF-16 units, each of which may be escaped, and more. */
const LONGEST_MEMBER = 524_288
/** Bytes of the names of changed blocks in one reply. The rest comes with the next one. */
const LONGEST_BLOCKS = 4 * 1024 * 1024

/**
 * A node's sign of life in one bucket.
 *
 * KEYS: sequence, log, ends, keep, hot, hand, resets, nodes, status, ahead, rules, news of leases.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the nodes' time, or nothing), ttl, registry (whether this bucket holds it), cursor, page, hot (whether
 * the hot keys are wanted), leases (whether news of leases are).
 *
 * Reply: seconds, microseconds, sequence before, live nodes, version of the block list, version up to which blocks are
 * handed out, hot members, blocks: member, remaining, …; whether somebody watches, statuses, by how much the nodes' time is
 * ahead of the server's; what others tell of their rules: node, text, …; news of leases; the names of what could not be read.
 */
export const HEARTBEAT: string = [
  `${PRELUDE}
local nodes, watched, statuses, ahead, rules = 0, 0, {}, '', {}
if request.registry then
  local AHEAD = KEYS[10]
  local text = sound('GET', AHEAD)
  local value = text and tonumber(text)
  if value and value >= -${FAR} and value <= ${FAR} then
    ahead = number(value)
  elseif text then
    lose(AHEAD, AHEAD)
  end
  if not request.now then
    now = shown + (tonumber(ahead) or 0)
  elseif math.abs(now - shown) > 1000 then
    call('SET', AHEAD, number(now - shown), 'PX', request.ttl)
  elseif ahead ~= '' then
    call('PEXPIRE', AHEAD, 0)
  end
  local NODES = KEYS[8]
  sound('ZREMRANGEBYSCORE', NODES, '-inf', number(now))`,
  // Left by a clock that was ahead of this server's.
  `  call('ZREMRANGEBYSCORE', NODES, number(now + math.max(10 * request.ttl, 120000)), '+inf')
  call('ZADD', NODES, number(now + request.ttl), request.node)
  expireAtLeast(NODES, request.ttl)
  nodes = call('ZCARD', NODES)
`,
  // Statuses are stored only while a process watches. The time until which one does is in the field ':until', which no process uses.
  `  local STATUS = KEYS[9]
  local text = sound('HMGET', STATUS, ':until')[1]
  local watchedUntil = text and (tonumber(text) or math.huge) or 0`,
  // Watchers say ten seconds; those of a node whose time is ahead may seem more.
  `  if text and not (watchedUntil > -${FAR} and watchedUntil <= now + HOUR) then
    lose(STATUS .. ' :until')
    redis.pcall('HDEL', STATUS, ':until')
    watchedUntil = 0
  end
  if request.watch then
    watchedUntil = now + 10000
    call('HSET', STATUS, ':until', number(watchedUntil))
    expireAtLeast(STATUS, 10000)
  end
  if request.status then
    call('HSET', STATUS, request.node, number(now) .. ' ' .. request.status)
    expireAtLeast(STATUS, request.ttl)
  end
  watched = watchedUntil > now and 1 or 0
  if request.watch then`,
  // Not permitted: then this node sees itself alone, and nothing else is amiss.
  `    local size = redis.pcall('HLEN', STATUS)
    if type(size) == 'number' and size > ${MOST_STATUSES} then
      lose(STATUS, STATUS)
    end
    local all = redis.pcall('HGETALL', STATUS)
    local room = ${LONGEST_STATUSES}
    for i = 1, all.err and 0 or #all, 2 do
      local node, said = all[i], all[i + 1]
      if node ~= ':until' then
        if call('ZSCORE', NODES, node) then
          local at, text
          if #said <= ${LONGEST_STATUS} then at, text = string.match(said, '^(%S+) (.*)$') end
          at = tonumber(at or '')
          if at and at > -${FAR} and at < ${FAR} then
            room = room - #said
            if room >= 0 then
              statuses[#statuses + 1] = node
              statuses[#statuses + 1] = number(math.max(0, now - at))
              statuses[#statuses + 1] = text
            end
          else
            lose(STATUS .. ' ' .. node)
            redis.pcall('HDEL', STATUS, node)
          end
        else
          redis.pcall('HDEL', STATUS, node)
        end
      end
    end
  end
  if request.rules then
    local RULES = KEYS[11]
    if sound('HLEN', RULES) > ${2 * MOST_RULES} then lose(RULES, RULES) end
    local kept = 0
    local all = call('HGETALL', RULES)
    for i = 1, #all, 2 do
      local node, at = nil, nil
      if #all[i] <= ${LONGEST_RULES} and #all[i + 1] <= 256 then at, node = string.match(all[i + 1], '^(%S+) (%S+)$') end
      at = tonumber(at or '')
      if not (at and at > -${FAR} and at <= now + HOUR) then
        lose(RULES)
        at = now
      end
      if at <= now then
        call('HDEL', RULES, all[i])
      elseif all[i] ~= request.rules then
        kept = kept + 1
        if kept < ${MOST_RULES} then
          rules[#rules + 1] = node
          rules[#rules + 1] = all[i]
        end
      end
    end
    if kept < ${MOST_RULES} then
      call('HSET', RULES, request.rules, number(now + ${RULES_KEPT}) .. ' ' .. request.node)
      expireAtLeast(RULES, ${RULES_KEPT})
    end
  end
end

local list = blockList()
list.forget()
local version = list.version()
if version > request.cursor then`,
  // All three sets are what they should be from here on.
  `  sound('ZCARD', ENDS)
  version = list.version()
end
local cursor, blocks = version, {}
if version > request.cursor then
  local found = call('ZRANGEBYSCORE', LOG, '(' .. number(request.cursor), '+inf', 'WITHSCORES', 'LIMIT', 0, request.page)
  local final, room = #found, ${LONGEST_BLOCKS}
  for i = 1, #found, 2 do
    local member = found[i]
    room = room - #member
    if room < 0 and i > 1 then
      final = i - 1
      break
    end
    if member ~= '' then
      local changedIn = tonumber(found[i + 1])
      local ours = #member <= ${LONGEST_MEMBER} and string.find(member, '^[^\\n]+\\n[^\\n]*$')
      local left = ours and list.left(member) or 0
      if not ours or changedIn > version then
        lose(LOG)
        list.remove(member)
        if left > 0 then blocksLost = true end
      elseif left > 0 or call('ZSCORE', KEEP, member) then
        blocks[#blocks + 1] = member
        blocks[#blocks + 1] = list.text(member, left, list.byHand(member), list.epoch(member))
      else`,
  // A lifted block that nothing says how long to keep.
  `        list.remove(member)
      end
    end
  end
  if final == 2 * request.page or final < #found then
    cursor = math.min(version, math.floor(tonumber(found[final])))`,
  // The empty member sorts before the block of the same version.
  `    if found[final - 1] == '' then cursor = cursor - 1 end
  end
end`,
  // Versions must outlast the cursors that nodes hold, also when nothing is blocked any more.
  `local left = call('PTTL', LOG)
if left >= 0 and left < HOUR then call('PEXPIRE', LOG, HOUR) end

local hot = {}
if request.hot then
  if sound('ZCARD', HOT) > 2 * ${MOST_HOT} then lose(HOT, HOT) end
  if call('ZREMRANGEBYSCORE', HOT, number(now + ${FAR}), '+inf') > 0 then lose(HOT) end
  local room = ${LONGEST_HOT}
  for _, member in ipairs(call('ZRANGEBYSCORE', HOT, '(' .. number(now), '+inf', 'LIMIT', 0, ${MOST_HOT})) do
    if #member <= ${LONGEST_MEMBER} and string.find(member, '^[^\\n]+\\n[^\\n]*\\n%d*$') then
      room = room - #member
      if room >= 0 then hot[#hot + 1] = member end
    else
      lose(HOT)
      call('ZREM', HOT, member)
    end
  end
end
local news = {}
if request.leases then
  local room = ${LONGEST_HOT}
  for _, member in ipairs(sound('ZRANGEBYSCORE', KEYS[12], '(' .. number(now), number(now + ${FAR}), 'LIMIT', 0, ${MOST_HOT})) do
    room = room - #member
    if room >= 0 then news[#news + 1] = member end
  end
end
return {
  clock[1], clock[2], ${SEQUENCE_BEFORE}, nodes, number(version), number(cursor), hot, blocks, watched, statuses, ahead, rules, news, lost
}
`,
].join('\n')
