import { PRELUDE } from './lua-prelude.ts'

/**
 * Counts and blocks of one bucket.
 *
 * KEYS: sequence, log, ends, keep, hot; then for each block that may grow, how often the key was blocked; for each entry: of a fixed window, counter and interval hash for each cell;
 * of a sliding one, the window hash.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the nodes' time, or nothing), prefix (of the bucket's keys), channel (or false), policies [id, width,
 * cells, limit, hot, ttl], blocks [policy, label, kind, remaining, and of one that may
 * grow: factor, max, memory], entries as one flat list: policy, label (0 when the
 * Redis key holds it), atMost or -1, number of cells, and for each ordinal, taken, given.
 *
 * Reply: seconds, microseconds, sequence before, then for each block its remaining time, and for each entry
 * `granted|blocked|cells`, cells being `ordinal,taken,given,…` or `ordinal;taken,taken,…`, or just the units taken when there is nothing else to say: the script's time
 * goes mostly into making texts.
 */
export const EXCHANGE: string = `${PRELUDE}
local reply = { clock[1], clock[2], before or '' }
local policies = request.policies
local at = 5

-- The caller's key, from the name of its Redis key: only few entries need it.
local function labelOf(label, policy, key, kind)
  if label ~= 0 then return label end
  local start = #request.prefix + #policy[1] + 4
  if kind == 'w' then return string.sub(key, start) end
  return string.match(string.sub(key, start), '^(.*):[^:]*$')
end

-- An announcement that is not permitted, or finds no listener, must not undo counts.
local function publish(kind, policy, label, content)
  if request.channel then
    redis.pcall('PUBLISH', request.channel, kind .. '\\n' .. policy[1] .. '\\n' .. label .. '\\n' .. content)
  end
end

local keepUntil = 0

local function changeBlock(change)
  local policy, label, kind, wanted = policies[change[1]], change[2], change[3], change[4]
  local factor, most, memory = change[5], change[6], change[7]
  if factor then at = at + 1 end
  local member = policy[1] .. '\\n' .. label
  local left = math.max(0, (tonumber(call('ZSCORE', ENDS, member)) or 0) - now)
  if kind == 'excess' and left > 0 or kind == 'restore' and left >= wanted or wanted == 0 and left == 0 then
    return left
  end
  if factor and kind == 'excess' then
    local level = tonumber(call('GET', KEYS[at])) or 0
    wanted = math.min(math.max(wanted, most), wanted * factor ^ level)
    call('SET', KEYS[at], level + 1, 'PX', math.ceil(wanted + memory))
  end
  local version = call('ZINCRBY', LOG, 1, '')
  call('ZADD', LOG, version, member)
  if wanted > 0 then
    call('ZADD', ENDS, number(now + wanted), member)
  else
    call('ZREM', ENDS, member)
  end
  -- Who missed a block's lift must still hear of it for as long as he would hold the block.
  local keep = math.max(now + wanted, tonumber(call('ZSCORE', KEEP, member)) or 0)
  call('ZADD', KEEP, number(keep), member)
  keepUntil = math.max(keepUntil, keep)
  publish('b', policy, label, number(wanted))
  return wanted
end

for _, change in ipairs(request.blocks) do reply[#reply + 1] = number(changeBlock(change)) end
if keepUntil > 0 then
  forgetBlocks()
  for _, name in ipairs({ LOG, ENDS, KEEP }) do expireAtLeast(name, keepUntil - now + HOUR) end
end

-- Looked up once a call: as a rule nothing is blocked.
local anyBlocks = call('EXISTS', ENDS) == 1

local function blocked(policy, label)
  local ends = call('ZSCORE', ENDS, policy[1] .. '\\n' .. label)
  return ends and math.max(0, tonumber(ends) - now) or 0
end

local hotUntil = 0

-- Marks a key as hot until then; true when it was not yet.
local function markHot(member, untilThen)
  hotUntil = math.max(hotUntil, untilThen)
  return call('ZADD', HOT, number(untilThen), member) == 1
end

-- Counts are kept as 'taken', or 'taken:given'.
local function parse(text)
  if not text then return 0, 0 end
  local taken = tonumber(text)
  if taken then return taken, 0 end
  local first, second = string.match(text, '^([^:]+):(.+)$')
  return tonumber(first), tonumber(second)
end

local function format(taken, given)
  if given == 0 then return taken end
  return number(taken) .. ':' .. number(given)
end

-- What a write of these counts would make of a cell: units taken more, and the total after it.
local function growth(hash, taken, given)
  local known = call('HMGET', hash, request.node, ':t')
  local ownTaken, ownGiven = parse(known[1])
  local total, back = parse(known[2])
  local more = math.max(0, taken - ownTaken)
  return more, total - back + more - math.max(0, given - ownGiven)
end

-- Writes one cell. Returns the totals and whether others should hear of them. In local variables alone, as this is
-- what Redis spends its time on.
local function write(policy, label, counter, hash, ordinal, taken, given)
  local known = call('HMGET', hash, request.node, ':t')
  local ownTaken, ownGiven = parse(known[1])
  local allTaken, allGiven = parse(known[2])
  if taken <= ownTaken and given <= ownGiven then return allTaken, allGiven, false end

  if taken < ownTaken then taken = ownTaken end
  if given < ownGiven then given = ownGiven end
  local before = allTaken - allGiven
  allTaken, allGiven = allTaken + taken - ownTaken, allGiven + given - ownGiven
  local after = allTaken - allGiven
  call('HSET', hash, request.node, format(taken, given), ':t', format(allTaken, allGiven))
  -- From the cell's end on, or from now on when the cell is not the running one (late counts, a wrong clock).
  local width = policy[2]
  local ends = (ordinal + 1) * width
  local running = ends > now and ends <= now + width
  local expiry = math.ceil(policy[6] + (running and ends - now or width))
  if not known[2] or not running then call('PEXPIRE', hash, expiry) end
  -- The hash is what counts; this is for people. Adding is cheaper than setting, and shows when something is amiss.
  local shown = false
  if known[2] and running and before % 1 == 0 and after % 1 == 0 and after < 1e15 then
    shown = redis.pcall('INCRBY', counter, after - before)
  end
  if shown ~= after then call('SET', counter, after, 'PX', expiry) end

  local news = before < policy[4] and after >= policy[4]
  if before < policy[5] and after >= policy[5] and ends > now then
    local member = policy[1] .. '\\n' .. labelOf(label, policy, counter, 'c') .. '\\n' .. number(ordinal)
    if markHot(member, ends) then news = true end
  end
  return allTaken, allGiven, news
end

local function cellText(ordinal, taken, given)
  return number(ordinal) .. ',' .. number(taken) .. ',' .. number(given)
end

local function fixed(policy, label, atMost, count, entries, place)
  local granted = true
  if atMost >= 0 then
    for i = 0, count - 1 do
      local more, total = growth(KEYS[at + 2 * i + 2], entries[place + 3 * i + 1], entries[place + 3 * i + 2])
      if more > 0 and total > atMost then granted = false end
    end
  end
  local key = KEYS[at + 1]
  local texts, news = nil, false
  for i = 0, count - 1 do
    local counter, hash = KEYS[at + 2 * i + 1], KEYS[at + 2 * i + 2]
    local ordinal, taken, given, tells = entries[place + 3 * i], entries[place + 3 * i + 1], entries[place + 3 * i + 2], false
    if not granted then taken, given = 0, 0 end
    taken, given, tells = write(policy, label, counter, hash, ordinal, taken, given)
    if tells then news = true end
    if count == 1 and granted and not news and not anyBlocks and given == 0 and taken % 1 == 0 and taken < 1e15 then
      at = at + 2
      return taken
    end
    texts = (texts and texts .. ',' or '') .. cellText(ordinal, taken, given)
  end
  at = at + 2 * count
  return granted, texts or '', news, key
end

-- Cells of a window are packed as one flat list, ordinal, taken, given, …, in ascending order.
local function find(list, ordinal)
  local place = #list + 1
  while place > 3 and list[place - 3] >= ordinal do place = place - 3 end
  return place, list[place] == ordinal
end

local function insert(list, place, ordinal)
  table.insert(list, place, 0)
  table.insert(list, place, 0)
  table.insert(list, place, ordinal)
end

-- The texts of numbers: the keys of one call have most of theirs in common, and making them is what the script spends its
-- time on.
local texts = {}

local function textNumber(value)
  local text = texts[value]
  if not text then
    text = tostring(number(value))
    texts[value] = text
  end
  return text
end

-- A part of a list as text. Cells that follow each other, nothing given back, are the first one's ordinal and all units
-- taken: 'ordinal;taken,taken,…'.
local function textOf(list, first, final)
  if first > final then return '' end
  local parts, size = {}, 0
  local ordinal = list[first]
  for i = first, final, 3 do
    if list[i] ~= ordinal + size or list[i + 2] ~= 0 then
      parts = {}
      for place = first, final do parts[place - first + 1] = textNumber(list[place]) end
      return table.concat(parts, ',')
    end
    size = size + 1
    parts[size] = textNumber(list[i + 1])
  end
  return textNumber(ordinal) .. ';' .. table.concat(parts, ',')
end

local function alive(list, width, ttl)
  if (list[1] + 1) * width + ttl > now then return list end
  local kept = {}
  for i = 1, #list, 3 do
    if (list[i] + 1) * width + ttl > now then
      kept[#kept + 1] = list[i]
      kept[#kept + 1] = list[i + 1]
      kept[#kept + 1] = list[i + 2]
    end
  end
  return kept
end

-- Totals are announced also when they pass this part of the limit; see hub-sliding.ts of core.
local nearlyFull = 0.98

local function sliding(policy, label, atMost, count, entries, place)
  local id, width, span, limit, hot, ttl = policy[1], policy[2], policy[3], policy[4], policy[5], policy[6]
  at = at + 1
  local hash = KEYS[at]
  local lastSent = place + 3 * count - 1
  local known = call('HMGET', hash, ':c', request.node, ':a')
  local list = known[1] and cmsgpack.unpack(known[1]) or {}
  local newest, sends = -math.huge, false
  for i = place, lastSent, 3 do
    newest = math.max(newest, entries[i])
    if entries[i + 1] > 0 or entries[i + 2] > 0 then sends = true end
  end
  local own = sends and known[2] and cmsgpack.unpack(known[2]) or {}

  -- Cells beyond the node's newest and the server's own time come from a wrong clock and are shown to nobody.
  local last = math.max(newest, math.floor(now / width))
  -- The window ends with the newest cell that is seen, so that late counts of an older one meet the running window.
  local windowEnd = newest
  for i = 1, #list, 3 do
    if list[i] <= last and list[i] > windowEnd then windowEnd = list[i] end
  end
  local total = 0
  for i = 1, #list, 3 do
    if list[i] > windowEnd - span and list[i] <= windowEnd then total = total + list[i + 1] - list[i + 2] end
  end

  local net, units, grown, changed = total, 0, {}, false
  for i = place, lastSent, 3 do
    local ordinal = entries[i]
    local spot, found = find(own, ordinal)
    local moreTaken = math.max(0, entries[i + 1] - (found and own[spot + 1] or 0))
    local moreGiven = math.max(0, entries[i + 2] - (found and own[spot + 2] or 0))
    if moreTaken > 0 or moreGiven > 0 then
      grown[#grown + 1] = { ordinal, moreTaken, moreGiven }
      units = units + moreTaken
      if ordinal > windowEnd - span then net = net + moreTaken - moreGiven end
      changed = true
    end
  end
  local granted = not (atMost >= 0 and units > 0 and net > atMost)
  local news = false

  if granted and changed then
    local opened, ownOpened = false, false
    for _, more in ipairs(grown) do
      local spot, found = find(list, more[1])
      if not found then insert(list, spot, more[1]) opened = true end
      list[spot + 1], list[spot + 2] = list[spot + 1] + more[2], list[spot + 2] + more[3]
      spot, found = find(own, more[1])
      if not found then insert(own, spot, more[1]) ownOpened = true end
      own[spot + 1], own[spot + 2] = own[spot + 1] + more[2], own[spot + 2] + more[3]
    end
    -- Together, so that a node's counts are never forgotten while the sum still holds them.
    if opened or ownOpened then list, own = alive(list, width, ttl), alive(own, width, ttl) end

    if units > 0 and net >= nearlyFull * limit then
      if total < nearlyFull * limit then
        news = true
      elseif net >= limit then
        local announced = tonumber(known[3])
        news = total < limit or not announced or now - announced >= 10 or now < announced
      end
    end
    if units > 0 and net >= hot and (total < hot or opened) then
      local member = id .. '\\n' .. labelOf(label, policy, hash, 'w') .. '\\n'
      local marked = tonumber(call('ZSCORE', HOT, member)) or 0
      -- Announced once a window, and handed to new nodes for as long as it may still be hot without a further mark.
      if marked <= now + width * span then
        markHot(member, now + 2 * width * span)
        news = true
      end
    end
    if news and net >= limit then
      call('HSET', hash, ':c', cmsgpack.pack(list), request.node, cmsgpack.pack(own), ':a', number(now))
    else
      call('HSET', hash, ':c', cmsgpack.pack(list), request.node, cmsgpack.pack(own))
    end
    -- A cell lasts for its width, and for the ttl after the last write in it.
    if opened or ownOpened then call('PEXPIRE', hash, math.ceil(ttl + width)) end
  end

  local first, final = 1, #list
  while first < final and list[first] <= newest - span do first = first + 3 end
  while first < final and list[final - 2] > last do final = final - 3 end
  return granted, textOf(list, first, final), news, hash
end

local entries = request.entries
local place, final = 1, #entries
while place <= final do
  local policy, label, atMost, count = policies[entries[place]], entries[place + 1], entries[place + 2], entries[place + 3]
  local kind = policy[3] == 1 and 'c' or 'w'
  local granted, text, news, key = (kind == 'c' and fixed or sliding)(policy, label, atMost, count, entries, place + 4)
  if text then
    local left = 0
    if news or anyBlocks then
      label = labelOf(label, policy, key, kind)
      if news then publish('t', policy, label, text) end
      if anyBlocks then left = blocked(policy, label) end
    end
    reply[#reply + 1] = (granted and '1|' or '0|') .. number(left) .. '|' .. text
  else
    reply[#reply + 1] = granted
  end
  place = place + 4 + 3 * count
end
if hotUntil > 0 then
  call('ZREMRANGEBYSCORE', HOT, '-inf', number(now))
  expireAtLeast(HOT, math.max(1, hotUntil - now))
end
return reply
`
