import { HELD, MOST_RETURNS } from '@weir/core/sync'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/** Units and times that a script of this layout never exceeds. */
const MOST = 2 ** 63
/** Bytes of one of its values: up to 9 numbers, and two for each open reservation. */
const LONGEST = 400 + 2 * 25 * MOST_RETURNS
/** Keys whose news are stored for heartbeats. Further news are only announced. */
const MOST_NEWS = 1_000

/**
 * Quota that processes take ahead: `grantLease` of core, step by step. There is a hash for each key and interval. Only a hash without an
 * interval has `until`. `earliest` is 0 if nothing returns by itself, and `due back` follow for each open reservation:
 *
 *     ''                  out used tail quietUntil epoch earliest
 *     node incarnation    granted returned taken given cleared seq back more    until    due back …
 *
 * KEYS: sequence, log, ends, keep, hot, hand, resets, news, and then the hash of each request for quota.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the processes' time, or nothing), channel (or false), policies [id, width], `asks` as
 * one flat list: policy, label, ordinal, incarnation, seq, granted, returned, taken, given, cleared, epoch, least, waiting, upTo, limit,
 * nodes, early, lifetime, open (a list of `due, back, …`, or 0).
 *
 * Reply: seconds, microseconds, sequence before, then for each request `granted|free|used|tail|quiet|epoch|now|blocked|manual`. A list of
 * names follows if values can't be read.
 */
export const LEASES: string = [
  `${PRELUDE}
local NEWS = KEYS[8]
local reply = { clock[1], clock[2], '' }
local blocks = redis.pcall('ZCARD', KEEP) ~= 0 and blockList()
local news = {}

-- Reads numbers of a row or the head, and pairs after them if there may be some. Only the second of a pair may be below 0.
local function parse(text, count, pairsToo)
  if #text > ${LONGEST} then return nil end
  local list = {}
  for word in string.gmatch(text, '%S+') do
    local value = tonumber(word)
    local least = #list > count and (#list - count) % 2 == 1 and -${MOST} or 0
    if not value or not (value >= least and value <= ${MOST}) then return nil end
    list[#list + 1] = value
  end
  return (#list == count or pairsToo and #list > count and (#list - count) % 2 == 0) and list or nil
end

local function textOf(list)
  local texts = {}
  for i, value in ipairs(list) do texts[i] = number(value) end
  return table.concat(texts, ' ')
end

local function outOf(row)
  return math.max(0, math.max(row[1] - row[2], row[3] - row[4] + row[8]) - row[7] - row[5])
end

local function usedOf(row)
  return math.max(0, row[3] - row[4] + row[8] - row[7] - row[5])
end

local function change(head, row, counts)
  head[1] = head[1] - outOf(row)
  head[2] = head[2] - usedOf(row)
  for i, value in pairs(counts) do row[i] = value end
  head[1] = head[1] + outOf(row)
  head[2] = head[2] + usedOf(row)
end
`,
  // Clears all rows after a reset of the key.
  `local function clear(key, head, mine, field, count)
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local row = all[i] ~= '' and (all[i] == field and mine or parse(all[i + 1], count, true))
    if row then
      for place = #row, count + 1, -1 do row[place] = nil end
      change(head, row, { [5] = math.max(row[5], row[3] - row[4]), [7] = 0, [8] = 0 })
      if row ~= mine then call('HSET', key, all[i], textOf(row)) end
    end
  end
end

-- Settles the reservations of a row that are due, and notes the first of the others.
local function settle(head, row, count)
  local place, any = count + 1, false
  while row[place] do
    local due, back = row[place], row[place + 1]
    if due > now then
      head[6] = math.min(head[6], due)
      place = place + 2
    else
      table.remove(row, place)
      table.remove(row, place)
      change(head, row, { [7] = row[7] + math.max(0, back), [8] = row[8] + math.max(0, -back) })
      any = true
    end
  end
  return any
end

local function forgetSilent(key, head, count)
  head[6] = math.huge
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local row = all[i] ~= '' and parse(all[i + 1], count, true)
    if row and (count == 8 or row[9] > now) then
      if settle(head, row, count) then call('HSET', key, all[i], textOf(row)) end
      if count == 9 then head[6] = math.min(head[6], row[9]) end
    elseif all[i] ~= '' then
      if row then
        head[1] = head[1] - outOf(row)
        head[2] = head[2] - usedOf(row)
      end
      call('HDEL', key, all[i])
    end
  end
end

local function ask(key, policy, label, a)
  local ordinal, width = a[1], policy[2]
  local held = ordinal == ${HELD}
  local left = held and a[16] or (ordinal + 1) * width - now
  if not held and (left <= 0 or now < ordinal * width - a[15]) then return '0|0|0|0|0|0|' .. number(now) end
  local field = request.node .. ' ' .. string.format('%.0f', a[2])
  local found = sound('HMGET', key, '', field)
  local count = held and 9 or 8
  local head = found[1] and parse(found[1], 6)
  local row = found[2] and parse(found[2], count, true)`,
  // A part of it alone would be wrong, so all of it is lost.
  `  if found[1] and not head or found[2] and not row or found[2] and not head then
    lose(key, key)
    head, row = nil, nil
  end
  head = head or { 0, 0, 0, 0, 0, 0 }
  if head[6] == 0 then head[6] = math.huge end
  if now >= head[6] then
    forgetSilent(key, head, count)
    local mine = row and call('HGET', key, field)
    row = mine and parse(mine, count, true)
  end
  row = row or { 0, 0, 0, 0, 0, 0, 0, 0 }
  if held then
    row[9] = now + a[16]
    head[6] = math.min(head[6], row[9])
  end
  local seq, limit, nodes = a[3], a[13], a[14]
  local before, wasTail = limit - head[1], head[3] == 1
  if a[9] > head[5] then
    head[5] = a[9]
    clear(key, head, row, field, count)
  end
  local lost = a[4] > row[1]
  if lost then head[4] = now + a[16] end
  change(head, row, {
    math.max(row[1], a[4]), math.max(row[2], a[5]), math.max(row[3], a[6]), math.max(row[4], a[7]),
    a[9] < head[5] and math.max(row[5], a[8]) or a[8]
  })

  -- The process is alive, so its own counts apply.
  if seq > row[6] then
    change(head, row, { [7] = 0, [8] = 0 })
    for place = #row, count + 1, -1 do row[place] = nil end
    for place, value in ipairs(a[17] == 0 and {} or a[17]) do
      row[count + place] = value
      if place % 2 == 1 then head[6] = math.min(head[6], value) end
    end
  end

  local room = math.max(0, limit - head[1])
  local unmet = false
  if seq > row[6] and now >= head[4] then
    local ahead = a[11]
    if head[3] ~= 1 and room > nodes then ahead = math.max(a[11], math.min(a[12], row[1] + math.floor(room / 2))) end
    local reached = math.min(ahead, row[2] + row[5] + outOf(row) + room)
    if reached > row[1] and reached >= a[10] then change(head, row, { reached }) end
    unmet = a[11] > row[1]
  end
  row[6] = math.max(row[6], seq)

  local free = math.max(0, limit - head[1])
  if unmet or free <= nodes then
    head[3] = 1
  elseif free > 2 * nodes then
    head[3] = 0
  end
  if head[6] == math.huge then head[6] = 0 end
  call('HSET', key, '', textOf(head), field, textOf(row))
  if held then
    expireAtLeast(key, left + 1000)
  else
    call('PEXPIRE', key, math.ceil(math.min(left + 1000, ${FAR})))
  end
  local tail = head[3] == 1
  local member = policy[1] .. '\\n' .. label .. '\\n' .. number(ordinal)
  if lost or tail and not wasTail or before < 1 and free >= 1 then
    local list = news[policy] or {}
    news[policy] = list
    list[#list + 1] = label
    list[#list + 1] = table.concat({ number(ordinal), number(free), tail and 1 or 0, lost and 1 or 0 }, ',')`,
  // For processes that miss the announcement. Heartbeats return the news until they expire.
  `    if lost or tail then
      sound('ZREMRANGEBYSCORE', NEWS, '-inf', number(now))
      if call('ZCARD', NEWS) < ${MOST_NEWS} then
        call('ZADD', NEWS, number(now + a[16]), member .. (lost and '\\nlost' or '\\n'))
        expireAtLeast(NEWS, a[16])
      end
    end
  end
  if wasTail and not tail then sound('ZREM', NEWS, member .. '\\n') end
  return table.concat({
    number(row[1]), number(free), number(head[2]), tail and 1 or 0, number(math.max(0, head[4] - now)), number(head[5]), number(now)
  }, '|')
end

local asks, at = request.asks, 8
for place = 1, #asks, 19 do
  at = at + 1
  local policy, label = request.policies[asks[place]], asks[place + 1]
  local a = {}
  for i = 1, 17 do a[i] = asks[place + 1 + i] end
  local text = ask(KEYS[at], policy, label, a)
  local member = blocks and policy[1] .. '\\n' .. label
  local left = blocks and blocks.left(member) or 0
  reply[#reply + 1] = text .. '|' .. number(left) .. '|' .. (left > 0 and blocks.byHand(member) and '1' or '')
end

reply[3] = ${SEQUENCE_BEFORE}
if #lost > 0 then reply[#reply + 1] = lost end
if request.channel then
  for policy, list in pairs(news) do`,
  // An announcement that is not permitted, or has no listener, must not undo a grant.
  `    redis.pcall('PUBLISH', request.channel, 'l\\n' .. request.node .. '\\n' .. policy[1] .. '\\n' .. table.concat(list, '\\n'))
  end
end
return reply
`,
].join('\n')
