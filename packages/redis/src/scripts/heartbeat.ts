import { MOST_HOT } from '../keys/keys.ts'
import { PRELUDE } from './prelude.ts'

/**
 * A node's sign of life in one bucket.
 *
 * KEYS: sequence, log, ends, keep, hot, nodes, status, ahead.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the nodes' time, or nothing), ttl, registry (whether this bucket holds it), cursor, page, hot (whether
 * the hot keys are wanted).
 *
 * Reply: seconds, microseconds, sequence before, live nodes, version of the block list, version up to which blocks are
 * handed out, hot members, blocks: member, remaining, …; whether somebody watches, statuses, by how much the nodes' time is
 * ahead of the server's.
 */
export const HEARTBEAT: string = `${PRELUDE}
local nodes, watched, statuses, ahead = 0, 0, {}, ''
if request.registry then
  local AHEAD = KEYS[8]
  ahead = call('GET', AHEAD) or ''
  if not request.now then
    now = shown + (tonumber(ahead) or 0)
  elseif math.abs(now - shown) > 1000 then
    call('SET', AHEAD, number(now - shown), 'PX', request.ttl)
  elseif ahead ~= '' then
    call('PEXPIRE', AHEAD, 0)
  end
  local NODES = KEYS[6]
  call('ZREMRANGEBYSCORE', NODES, '-inf', number(now))
  -- Left by a clock that was ahead of this server's.
  call('ZREMRANGEBYSCORE', NODES, number(now + math.max(10 * request.ttl, 120000)), '+inf')
  call('ZADD', NODES, number(now + request.ttl), request.node)
  expireAtLeast(NODES, request.ttl)
  nodes = call('ZCARD', NODES)

  -- What nodes tell of themselves, while somebody watches: until then, in the field that is no node's.
  local STATUS = KEYS[7]
  if request.watch then
    call('HSET', STATUS, ':until', number(now + 10000))
    expireAtLeast(STATUS, 10000)
  end
  if request.status then
    call('HSET', STATUS, request.node, number(now) .. ' ' .. request.status)
    expireAtLeast(STATUS, request.ttl)
  end
  watched = (tonumber(call('HMGET', STATUS, ':until')[1] or 0) > now) and 1 or 0
  if request.watch then
    -- Not permitted: then this node sees itself alone, and nothing else is amiss.
    local all = redis.pcall('HGETALL', STATUS)
    for i = 1, all.err and 0 or #all, 2 do
      if all[i] ~= ':until' then
        if call('ZSCORE', NODES, all[i]) then
          local at, text = string.match(all[i + 1], '^(%S+) (.*)$')
          statuses[#statuses + 1] = all[i]
          statuses[#statuses + 1] = number(math.max(0, now - tonumber(at)))
          statuses[#statuses + 1] = text
        else
          redis.pcall('HDEL', STATUS, all[i])
        end
      end
    end
  end
end

forgetBlocks()
local version = tonumber(call('ZSCORE', LOG, '')) or 0
local cursor, blocks = version, {}
if version > request.cursor then
  local found = call('ZRANGEBYSCORE', LOG, '(' .. number(request.cursor), '+inf', 'WITHSCORES', 'LIMIT', 0, request.page)
  for i = 1, #found, 2 do
    if found[i] ~= '' then
      local ends = call('ZSCORE', ENDS, found[i])
      blocks[#blocks + 1] = found[i]
      blocks[#blocks + 1] = number(ends and math.max(0, tonumber(ends) - now) or 0)
    end
  end
  if #found == 2 * request.page then
    cursor = tonumber(found[#found])
    -- The empty member sorts before the block of the same version.
    if found[#found - 1] == '' then cursor = cursor - 1 end
  end
end
-- Versions must outlast the cursors that nodes hold, also when nothing is blocked any more.
local left = call('PTTL', LOG)
if left >= 0 and left < HOUR then call('PEXPIRE', LOG, HOUR) end

local hot = {}
if request.hot then hot = call('ZRANGEBYSCORE', HOT, '(' .. number(now), '+inf', 'LIMIT', 0, ${MOST_HOT}) end
return { clock[1], clock[2], before or '', nodes, number(version), number(cursor), hot, blocks, watched, statuses, ahead }
`
