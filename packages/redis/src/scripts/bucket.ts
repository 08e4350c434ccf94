import { BUCKET_GROUPS, BUCKET_PARTS, FINE_PARTS } from '@weir/core/sync'
import { MOST_UNITS } from '../keys/keys.ts'
import { writeFields } from './former-processes.ts'
import { FAR } from './prelude.ts'

/** Bytes of one field: enough for the cells that a process sends in two spans, with all four numbers. */
const LONGEST_FIELD = 8_192
/** Groups in a field. A field of more than 64 bytes would make the hash several times as large. */
const GROUPS_PER_FIELD = 8
const GROUP_FIELDS = Math.ceil(BUCKET_GROUPS / GROUPS_PER_FIELD)

/**
 * The part of the script that counts levels of buckets, as `BUCKET_PARTS` of the contract describes.
 *
 * A key near its limit has about ten groups, and as many cells of each process. So they are stored in flat lists, with four numbers each.
 * Only those fields of the groups are written that have changed. This takes half the time of a table for each group.
 */
export const BUCKET: string = [
  // Fields of a bucket's hash: ':b' contains the base of `state`, ':0' to ':3' the groups, and each process's field its counts per cell.
  // Ordinals are packed as differences: the first one to the base or, in a process's field, to the cell in which all began. No base is 0,
  // because there are no cells before it.
  `local GROUP_FIELDS = {${Array.from({ length: GROUP_FIELDS }, (_, place) => `':${place}'`).join(', ')}}
local typeOf, floor, ceil, max, min, pack, unpackList = type, math.floor, math.ceil, math.max, math.min, cmsgpack.pack, cmsgpack.unpack

local mine = request.node`,
  // Weir's node ids have 16 hexadecimal digits. Even packed to half the length they are a quarter of the memory of a key near its limit.
  `if #mine == 16 and not string.find(mine, '[^0-9a-f]') then
  mine = '=' .. string.gsub(mine, '..', function(digits) return string.char(tonumber(digits, 16)) end)
end
`,
  // Numbers one after the other, without the head of a list, which saves a tenth for a busy key. Raises an error for other values.
  `local function unpacked(text)
  if not text or text == '' then return {} end
  if #text > ${LONGEST_FIELD} then error() end
  return { unpackList(text) }
end
`,
  // Adds cells to a list of ordinal, taken, given, rejected, …, ascending. They are packed as 0, ordinal, taken, …. With a leading 1 each
  // also has the refunded units, and with a leading 2 the rejected ones too. Raises an error for other values.
  `local function readCells(list, text, from)
  local flat = unpacked(text)
  local kind, size, at = flat[1], #flat, #list
  local step = kind == 1 and 3 or kind == 2 and 4 or 2
  if size > 0 and (size - 1) % step ~= 0 then error() end
  local ordinal = from
  for i = 2, size, step do
    local since, taken, given, rejected = flat[i], flat[i + 1], 0, 0
    if step > 2 then given = flat[i + 2] end
    if step > 3 then rejected = flat[i + 3] end
    if not (typeOf(since) == 'number' and since % 1 == 0 and since < 1e15 and since > -1e15) then error() end
    if not (typeOf(taken) == 'number' and taken >= 0 and taken <= ${MOST_UNITS}) then error() end
    if not (typeOf(given) == 'number' and given >= 0 and given <= ${MOST_UNITS}) then error() end
    if not (typeOf(rejected) == 'number' and rejected >= 0 and rejected <= ${MOST_UNITS}) then error() end
    ordinal = ordinal + since
    if at > 0 and ordinal <= list[at - 3] then error() end
    list[at + 1], list[at + 2], list[at + 3], list[at + 4] = ordinal, taken, given, rejected
    at = at + 4
  end
end

local function packCells(list, from, first, last)
  if first > last then return '' end
  local kind = 0
  for i = first, last, 4 do
    if list[i + 3] > 0 then kind = 2
    elseif kind == 0 and list[i + 2] > 0 then kind = 1 end
  end
  local flat, at, ordinal = { kind }, 1, from
  for i = first, last, 4 do
    flat[at + 1], flat[at + 2] = list[i] - ordinal, list[i + 1]
    at = at + 2
    if kind > 0 then
      flat[at + 1] = list[i + 2]
      at = at + 1
    end
    if kind > 1 then
      flat[at + 1] = list[i + 3]
      at = at + 1
    end
    ordinal = list[i]
  end
  return pack(unpack(flat))
end
`,
  `local function isUnits(value)
  return value >= 0 and value <= ${MOST_UNITS}
end

local function readState(known, width)
  local flat = unpacked(known[1])
  if #flat == 0 then return nil end
  if #flat == 8 then
    for i = 9, 12 do flat[i] = 0 end
  end
  if #flat ~= 12 then error() end
  for i = 1, 12 do
    local value = flat[i]
    if typeOf(value) ~= 'number' or not (value > -1e15 and value <= ${MOST_UNITS}) then error() end
    if (i < 6 or i == 11) and value % 1 ~= 0 then error() end
  end
  local origin = flat[1]
  local start = origin * width
  local state = { origin = origin, base = origin + flat[2], written = origin + flat[3], held = origin + flat[4], announced = start + flat[5], hot = flat[6] == 0 and 0 or start + flat[6], level = flat[7], taken = flat[8], given = flat[9], rejected = flat[10], floorAt = origin + flat[11], floor = flat[12], groups = {}, fields = 0 }
  if not (isUnits(state.level) and isUnits(state.taken) and isUnits(state.given) and isUnits(state.rejected) and isUnits(state.floor)) then error() end
  local groups = state.groups
  for i = 1, #GROUP_FIELDS do
    local text = known[i + 2]
    if text and text ~= '' then
      state.fields = i
      readCells(groups, text, state.base)
    end
  end
  return state
end
`,
  // Times are in whole milliseconds, and times and cells are differences, which are short. The last four numbers are left out if all are 0.
  `local function packState(state, width)
  local origin = state.origin
  local start = origin * width
  local hot = state.hot == 0 and 0 or max(1, ceil(state.hot - start))
  local base, written, held, announced = state.base - origin, state.written - origin, state.held - origin, floor(state.announced - start)
  if state.given == 0 and state.rejected == 0 and state.floor == 0 then return pack(origin, base, written, held, announced, hot, state.level, state.taken) end
  return pack(origin, base, written, held, announced, hot, state.level, state.taken, state.given, state.rejected, state.floor > 0 and state.floorAt - origin or 0, state.floor)
end
`,
  // The level at a later cell, from the time of the last level and the units that came in between.
  `local function levelBefore(state, at, level, ordinal, drain)
  level = max(0, level - (ordinal - at) * drain)
  if state.floor > 0 and state.floorAt >= at and state.floorAt < ordinal then return max(level, state.floor - (ordinal - state.floorAt) * drain) end
  return level
end

local function levelAt(state, running, drain)
  local at, level, groups, floorAt = state.base, state.level, state.groups, state.floor > 0 and state.floorAt
  for i = 1, #groups, 4 do
    local ordinal = groups[i]
    if ordinal > running then break end
    level = level - (ordinal - at) * drain
    if level < 0 then level = 0 end
    if floorAt and floorAt >= at and floorAt < ordinal then level = max(level, state.floor - (ordinal - floorAt) * drain) end
    level = level + groups[i + 1] - groups[i + 2]
    at = ordinal
  end
  level = max(0, level - (running - at) * drain)
  if floorAt and floorAt >= at and floorAt <= running then return max(level, state.floor - (running - floorAt) * drain) end
  return level
end
`,
  // A list without its first numbers.
  `local function without(list, gone)
  local kept = {}
  for i = gone + 1, #list do kept[i - gone] = list[i] end
  return kept
end
`,
  // Adds old groups to the level, unless processes may still send older counts. After a silence, it adds only groups that were old before
  // it. Then it writes all groups again, because the base has moved.
  `local function foldDue(state, running, span, drain)
  local written = state.written
  state.written = max(written, running)
  local silent, holds = running - written > span / 2, running < state.held
  if silent or state.held > running + span then state.held = running + span end
  if holds and not silent then return end
  local over, groups, before = 0, state.groups, (silent and written or running) - (holds and 2 or 1) * span
  while over < #groups and groups[over + 1] < before do
    local ordinal = groups[over + 1]
    state.level = levelBefore(state, state.base, state.level, ordinal, drain) + groups[over + 2] - groups[over + 3]
    state.base = ordinal
    if state.floorAt < ordinal then state.floor = 0 end
    over = over + 4
  end
  if over > 0 then state.groups, state.changed = without(groups, over), 1 end
end
`,
  // The index of a cell's group, which is made if there is none.
  `local function groupAt(state, ordinal, span, drain)
  local groups = state.groups
  local place = #groups - 3
  while place > 0 and groups[place] > ordinal do place = place - 4 end
  if place > 0 then
    local begun = groups[place]
    local since = ordinal - begun
    local apart = state.floor > 0 and state.floorAt >= begun and state.floorAt < ordinal
    if since < max(1, floor(span / ${FINE_PARTS})) and not apart then return place end
    if since < max(1, floor(span / ${BUCKET_PARTS})) and not apart and levelAt(state, begun, drain) >= since * drain then return place end
  end
  place = place + 4
  for i = #groups, place, -1 do groups[i + 4] = groups[i] end
  groups[place], groups[place + 1], groups[place + 2], groups[place + 3] = ordinal, 0, 0, 0
  return place
end
`,
  // The same for the cells of a process.
  `local function cellAt(cells, ordinal)
  local place = #cells - 3
  while place > 0 and cells[place] > ordinal do place = place - 4 end
  if place > 0 and cells[place] == ordinal then return place end
  place = place + 4
  for i = #cells, place, -1 do cells[i + 4] = cells[i] end
  cells[place], cells[place + 1], cells[place + 2], cells[place + 3] = ordinal, 0, 0, 0
  return place
end
`,
  // Adds a process's counts, and returns the new units taken.
  `local function write(state, own, entries, place, final, running, span, drain)
  local units = 0
  for i = place, final, 5 do
    local ordinal, taken, given, rejected = entries[i], entries[i + 1], entries[i + 2], entries[i + 3]
    if ordinal > state.base and (taken > 0 or given > 0 or rejected > 0) then
      local cell = cellAt(own, ordinal)
      local moreTaken, moreGiven = max(0, taken - own[cell + 1]), max(0, given - own[cell + 2])
      if rejected > own[cell + 3] then
        state.rejected, own[cell + 3] = state.rejected + rejected - own[cell + 3], rejected
      end
      if moreTaken > 0 or moreGiven > 0 then
        own[cell + 1], own[cell + 2] = own[cell + 1] + moreTaken, own[cell + 2] + moreGiven
        local group = groupAt(state, min(ordinal, running), span, drain)
        local groups = state.groups
        groups[group + 1] = groups[group + 1] + moreTaken
        groups[group + 2] = min(groups[group + 1], groups[group + 2] + moreGiven)
        state.changed = min(state.changed, group)
        state.taken = state.taken + moreTaken
        state.given = min(state.taken, state.given + moreGiven)
        units = units + moreTaken
      end
    end
  end
  local groups = state.groups`,
  // If there are too many groups, the two oldest become one.
  `  while #groups > ${4 * BUCKET_GROUPS} do
    local first, taken, given = groups[1], groups[2] + groups[6], groups[3] + groups[7]
    groups = without(groups, 4)
    groups[1], groups[2], groups[3] = first, taken, given
    state.groups, state.changed = groups, 1
  end
  return units
end
`,
  // Restores a level that a process knows from the store, but that was lost here.
  `local function raise(state, entries, place, final, running, drain)
  for i = place, final, 5 do
    local ordinal, level = entries[i], entries[i + 4]
    if level > 0 and ordinal > state.base and ordinal <= running and max(0, level - (running - ordinal) * drain) > levelAt(state, running, drain) then
      state.floorAt, state.floor = ordinal, level
    end
  end
end
`,
  // Drops the debt above the policy's maximum. It removes the newest units, as if they had been refunded.
  `local function forgive(state, excess)
  local groups = state.groups
  state.changed = 1
  for i = #groups - 3, 1, -4 do
    local cut = min(excess, groups[i + 1] - groups[i + 2])
    groups[i + 2], excess = groups[i + 2] + cut, excess - cut
    if excess <= 0 then return end
  end
  state.level = max(0, state.level - excess)
end
`,
  // The function of the same name handles windows in the other script. Here it handles buckets.
  `function sliding(policy, label, count, entries, place)
  local width, cells, limit, hot, ttl, drain, maxDebt = policy[2], policy[3], policy[4], policy[5], policy[6], policy[7], policy[8]
  at = at + 1
  local hash, final = KEYS[at], place + 5 * count - 1
  local losses = #lost
  local known = sound('HMGET', hash, ':b', mine, unpack(GROUP_FIELDS))
  local running, sends = floor(now / width), false
  for i = place, final, 5 do sends = sends or entries[i + 1] > 0 or entries[i + 2] > 0 or entries[i + 3] > 0 or entries[i + 4] > 0 end
  local fine, state = pcall(readState, known, width)
  local own = {}
  if fine and state and sends then fine = pcall(readCells, own, known[2], state.origin) end
  if not fine then
    lose(hash, hash)
    state, own = nil, {}
  end
`,
  // The new total may be larger than a process's counts. Then the process could not see from it that its own part is missing.
  `  if #lost > losses then announceLoss(policy, labelOf(label, policy, hash)) end
  local span = drain > 0 and min(cells, ceil(limit / drain)) or cells
  state = state or { base = 0, level = 0, written = running, held = running + span, taken = 0, given = 0, rejected = 0, floorAt = running, floor = 0, announced = now - 10, hot = 0, origin = running, groups = {}, fields = 0 }
  local news, level = false, nil
  if sends then`,
  // The index of the first number in the groups that differs from the stored one.
  `    state.changed = math.huge
    foldDue(state, running, span, drain)
    local over = 0
    while over < #own and own[over + 1] <= state.base do over = over + 4 end
    if over > 0 then own = without(own, over) end
    local before = levelAt(state, running, drain)
    local units = write(state, own, entries, place, final, running, span, drain)
    raise(state, entries, place, final, running, drain)
    level = levelAt(state, running, drain)
    if maxDebt and level > limit + maxDebt then
      forgive(state, level - limit - maxDebt)
      level = levelAt(state, running, drain)
    end`,
  // The bucket has drained since the running cell began. A unit must fit by the level of this moment.
  `    local since = drain * (now / width - running)
    local full = level - since > limit - 1
    if units > 0 then
      news = level - since >= hot and units >= 2 and units >= limit / 20
      if full and (before - since <= limit - 1 or not (state.announced <= now and now - state.announced < 10)) then news = true end
      if before - since < hot / 2 then state.hot = 0 end
      if level - since >= hot and not (state.hot > now + ttl and state.hot <= now + 4 * ttl) then
        if state.hot == 0 then news = true end
        state.hot = now + 2 * ttl
        markHot(policy, labelOf(label, policy, hash), '', state.hot)
      end
      if news and full then state.announced = now end
    end
    local fields = { hash, ':b', packState(state, width), mine, packCells(own, state.origin, 1, #own) }
    local groups = state.groups
    for i = 1, max(state.fields, ceil(#groups / ${4 * GROUPS_PER_FIELD})) do
      local last = ${4 * GROUPS_PER_FIELD} * i
      if state.changed <= last then
        local text = packCells(groups, state.base, last - ${4 * GROUPS_PER_FIELD - 1}, min(#groups, last))
        if text == '' then call('HDEL', hash, GROUP_FIELDS[i])
        else
          fields[#fields + 1] = GROUP_FIELDS[i]
          fields[#fields + 1] = text
        end
      end
    end
    ${writeFields(
      'unpack(fields)',
      'mine',
      `local cells = {}
          readCells(cells, text, state.origin)
          return #cells == 0 or cells[#cells - 3] <= state.base`,
    )}
    local empty = drain > 0 and level / drain * width or 0
    call('PEXPIRE', hash, string.format('%.0f', min(${FAR}, ceil(ttl + empty))))
  end
  local text = number(running) .. ',' .. number(state.taken) .. ',' .. number(state.given) .. ',' .. number(level or levelAt(state, running, drain)) .. (state.rejected > 0 and ',' .. number(state.rejected) or '')
  if news then announceTotal(policy, labelOf(label, policy, hash), text) end
  return text
end
`,
].join('\n')
