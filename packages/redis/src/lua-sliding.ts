/** The part of the exchange's script that keeps the counts of sliding windows. */
export const SLIDING: string = `-- Cells of a window are packed as one flat list, ordinal, taken, given, …, in ascending order.
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

-- A part of a list as text. Cells that follow each other, nothing refunded, are the first one's ordinal and all units
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
  local known = call('HMGET', hash, ':c', request.node, ':a', ':h')
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
    call('HSET', hash, ':c', cmsgpack.pack(list), request.node, cmsgpack.pack(own))
    -- Announced once a window, and handed to new nodes for as long as it may still be hot without a further mark.
    if units > 0 and net >= hot and (total < hot or opened) and (tonumber(known[4]) or 0) <= now + width * span then
      local untilThen = now + 2 * width * span
      markHot(policy, labelOf(label, policy, hash), '', untilThen)
      call('HSET', hash, ':h', number(untilThen))
      news = true
    end
    if news and net >= limit then call('HSET', hash, ':a', number(now)) end
    -- A cell lasts for its width, and for the ttl after the last write in it.
    if opened or ownOpened then call('PEXPIRE', hash, math.ceil(ttl + width)) end
  end

  local first, final = 1, #list
  while first < final and list[first] <= newest - span do first = first + 3 end
  while first < final and list[final - 2] > last do final = final - 3 end
  local text = textOf(list, first, final)
  if news then announce(totalNews, policy, labelOf(label, policy, hash), text) end
  return granted, text, hash
end
`
