import { MOST_HOT } from '../keys/keys.ts'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/** More processes than any cluster has. If there are more statuses, another program wrote them. */
const MOST_STATUSES = 4096
/** Bytes. A status has at most 8,192 UTF-16 units. */
const LONGEST_STATUS = 32_768
/** Bytes of all statuses in one reply. */
const LONGEST_STATUSES = 8 * 1024 * 1024
/** The most texts about rules that are stored and returned, the most bytes of one, and how long it is stored, in milliseconds. */
const MOST_RULES = 64
const LONGEST_RULES = 32_768
const RULES_KEPT = 60_000
/** Bytes of the names of keys near their limit in one reply. A process that starts can do without the last ones. */
const LONGEST_HOT = 2 * 1024 * 1024
/** Bytes of a policy's and a key's name: 64 K UTF-16 units, each of which may be escaped, and a reserve. */
const LONGEST_MEMBER = 524_288
/** Bytes of the names of changed blocks in one reply. The other names come with the next reply. */
const LONGEST_BLOCKS = 4 * 1024 * 1024

/**
 * The heartbeat of a process in one shard.
 *
 * KEYS: sequence, log, ends, keep, hot, hand, resets, nodes, status, ahead, rules, news of leases.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the processes' time, or nothing), ttl, registry (whether this shard contains it),
 * cursor, page, hot (whether the reply must contain the keys near their limit), leases (whether it must contain news of leases).
 *
 * Reply: seconds, microseconds, sequence before, live processes, version of the block list, version up to which the reply contains blocks,
 * hot members, blocks: member, remaining, …; whether a process watches, statuses, by how much the processes' time is ahead of the server's;
 * rules of other processes: node, text, …; news of leases; the names of values that can't be read.
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
  // Entries from a clock that was ahead of this server's.
  `  call('ZREMRANGEBYSCORE', NODES, number(now + math.max(10 * request.ttl, 120000)), '+inf')
  call('ZADD', NODES, number(now + request.ttl), request.node)
  expireAtLeast(NODES, request.ttl)
  nodes = call('ZCARD', NODES)
`,
  // Statuses are stored only while a process watches. The time until which one does is in the field ':until', which no process uses.
  `  local STATUS = KEYS[9]
  local text = sound('HMGET', STATUS, ':until')[1]
  local watchedUntil = text and (tonumber(text) or math.huge) or 0`,
  // Watchers set ten seconds. If a process's clock is ahead, it may look longer.
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
  // If the command is not permitted, this process sees only itself, and has no other disadvantage.
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
  // From here on, all three sets have the right type.
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
  // A lifted block without a time until which it must be kept.
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
  // The version must live longer than the cursors of processes, even if no key is blocked any more.
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
