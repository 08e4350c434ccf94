import { MOST_UNITS } from '../keys/keys.ts'
import { writeFields } from './former-processes.ts'

/** Bytes. A window usually has about 1,000 cells, and 7,936 at most. Three times as many, for their whole lifetime, need less. */
const LONGEST_LIST = 393_216

/** The part of the script that counts sliding windows. */
export const SLIDING: string = [
  // Cells of a window are packed as one flat list, ordinal, taken, given, …, in ascending order.
  `local function find(list, ordinal)
  local place = #list + 1
  while place > 3 and list[place - 3] >= ordinal do place = place - 3 end
  return place, list[place] == ordinal
end

local function insert(list, place, ordinal)
  table.insert(list, place, 0)
  table.insert(list, place, 0)
  table.insert(list, place, ordinal)
end
`,
  // The texts of numbers. The keys of one call have most numbers in common, and making texts takes most of the script's time.
  `local texts = {}

local function textNumber(value)
  local text = texts[value]
  if not text then
    text = tostring(number(value))
    texts[value] = text
  end
  return text
end
`,
  // A part of a list as text. Cells that follow each other without refunds are written as the first one's ordinal and all units taken:
  // 'ordinal;taken,taken,…'.
  `local function textOf(list, first, final)
  if first > final then return '' end
  local parts, size, ordinal = {}, 0, list[first]`,
  // Ascending whole numbers without a gap.
  `  local following = list[final - 2] - ordinal == (final - first - 2) / 3
  if following then
    for i = first, final, 3 do
      if list[i + 2] ~= 0 then
        following = false
        break
      end
      local taken = list[i + 1]
      size = size + 1
      parts[size] = texts[taken] or textNumber(taken)
    end
  end
  if following then return textNumber(ordinal) .. ';' .. table.concat(parts, ',') end
  parts = {}
  for place = first, final do parts[place - first + 1] = textNumber(list[place]) end
  return table.concat(parts, ',')
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
`,
  // Totals are announced even if they only pass this part of the limit. See `store/shapes/sliding.ts` of core.
  `local nearlyFull = 0.98
`,
  // The cells in a field of a window's hash, the end of the window, and its units. The window ends with the newest visible cell, so that
  // late counts of an older one meet the running window. Raises an error for anything but cells in ascending order. It checks only cells
  // that are used: from the newest one down to the window's first, or to 'oldest', or down to the end if some have expired.
  `local function readCells(text, newest, oldest, last, span, expired)
  if not text then return {}, newest, 0 end
  if #text > ${LONGEST_LIST} then error() end
  local list = cmsgpack.unpack(text)
  if type(list) ~= 'table' or #list % 3 ~= 0 then error() end
  local place, above, windowEnd = #list - 2, math.huge, newest
  if place >= 1 and list[1] <= expired then oldest = 0 end
  while place >= 1 and list[place] > last do
    local ordinal, taken, given = list[place], list[place + 1], list[place + 2]
    if not (ordinal < above and ordinal % 1 == 0 and taken >= 0 and given >= 0 and taken + given <= ${MOST_UNITS}) then error() end
    above = ordinal
    place = place - 3
  end
  if place >= 1 and list[place] > newest then windowEnd = list[place] end
  local before = windowEnd - span`,
  // If no number is negative, checking the sum is as good as checking each number.
  `  local ordinals, allTaken, allGiven = 0, 0, 0
  while place >= 1 do
    local ordinal, taken, given = list[place], list[place + 1], list[place + 2]
    if not (ordinal < above and taken >= 0 and given >= 0) then error() end
    if ordinal <= before then break end
    above, ordinals, allTaken, allGiven = ordinal, ordinals + ordinal, allTaken + taken, allGiven + given
    place = place - 3
  end
  if not (allTaken + allGiven <= ${MOST_UNITS} and ordinals % 1 == 0 and ordinals >= 0) then error() end
  above = math.huge
  while place >= 1 do
    local ordinal, taken, given = list[place], list[place + 1], list[place + 2]
    if not (ordinal >= 0 and ordinal < above and ordinal % 1 == 0 and taken >= 0 and given >= 0 and taken + given <= ${MOST_UNITS}) then error() end
    if ordinal < oldest then break end
    above = ordinal
    place = place - 3
  end
  return list, windowEnd, allTaken - allGiven
end

function sliding(policy, label, count, entries, place)
  local id, width, span, limit, hot, ttl = policy[1], policy[2], policy[3], policy[4], policy[5], policy[6]
  at = at + 1
  local hash = KEYS[at]
  local lastSent = place + 3 * count - 1
  local losses = #lost
  local known = sound('HMGET', hash, ':c', request.node, ':a', ':h')
  local newest, oldest, sends = -math.huge, math.huge, false
  for i = place, lastSent, 3 do
    newest, oldest = math.max(newest, entries[i]), math.min(oldest, entries[i])
    if entries[i + 1] > 0 or entries[i + 2] > 0 then sends = true end
  end`,
  // Cells beyond the process's newest and the server's own time come from a wrong clock, and no process receives them.
  `  local last = math.max(newest, math.floor(now / width))
  local expired = (now - ttl) / width - 1
  local fine, list, windowEnd, total = pcall(readCells, known[1], newest, math.min(oldest, newest - span + 1), last, span, expired)
  local own = {}
  if fine and sends then fine, own = pcall(readCells, known[2], newest, oldest, last, 1, expired) end
  if not fine then`,
  // The sums and the parts are only right together, so both are lost.
  `    lose(hash, hash)
    list, own, known, windowEnd, total = {}, {}, {}, newest, 0
  end
`,
  // The new totals may be larger than a process's counts. Then the process could not see from them that its own part is missing.
  `  if #lost > losses then announceLoss(policy, labelOf(label, policy, hash)) end

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

  local news = false
  if changed then
    local opened, ownOpened = false, false
    for _, more in ipairs(grown) do
      local spot, found = find(list, more[1])
      if not found then insert(list, spot, more[1]) opened = true end
      list[spot + 1], list[spot + 2] = list[spot + 1] + more[2], list[spot + 2] + more[3]
      spot, found = find(own, more[1])
      if not found then insert(own, spot, more[1]) ownOpened = true end
      own[spot + 1], own[spot + 2] = own[spot + 1] + more[2], own[spot + 2] + more[3]
    end`,
  // Both at once, so that a process's counts are never dropped while the sum still contains them.
  `    if opened or ownOpened then list, own = alive(list, width, ttl), alive(own, width, ttl) end

    if units > 0 and net >= nearlyFull * limit then
      if total < nearlyFull * limit then
        news = true
      elseif net >= limit then
        local announced = tonumber(known[3])
        news = news or total < limit or not (announced and announced <= now and now - announced < 10)
      end
    end
    if net >= hot and units >= 2 and units >= limit / 20 then news = true end
    ${writeFields(
      "hash, ':c', cmsgpack.pack(list), request.node, cmsgpack.pack(own)",
      'request.node',
      `local cells = cmsgpack.unpack(text)
          return #cells == 0 or (cells[#cells - 2] + 1) * width + ttl <= now`,
    )}`,
  // Announced once per window. Starting processes receive it for as long as the key may be near its limit without a further mark.
  `    local announcedUntil = tonumber(known[4]) or 0
    if units > 0 and net >= hot and (total < hot or opened) and not (announcedUntil > now + width * span and announcedUntil <= now + 3 * width * span) then
      local untilThen = now + 2 * width * span
      markHot(policy, labelOf(label, policy, hash), '', untilThen)
      call('HSET', hash, ':h', number(untilThen))
      news = true
    end
    if news and net >= limit then call('HSET', hash, ':a', number(now)) end`,
  // A cell lasts for its width, and for the ttl after the last write in it.
  `    if opened or ownOpened then call('PEXPIRE', hash, math.ceil(ttl + width)) end
  end

  local final = #list
  while final >= 1 and list[final - 2] > last do final = final - 3 end
  local first = final + 1
  while first > 3 and list[first - 3] > newest - span do first = first - 3 end
  local text = textOf(list, first, final)
  if news then announceTotal(policy, labelOf(label, policy, hash), text) end
  return text
end
`,
].join('\n')
