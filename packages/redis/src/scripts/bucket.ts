import { BUCKET_GROUPS, BUCKET_PARTS, FINE_PARTS } from '@weir/core/sync'
import { MOST_UNITS } from '../keys/keys.ts'
import { FAR } from './prelude.ts'

/** Bytes of one field: more than the lists of the most groups and cells need. */
const LONGEST_FIELD = 4_096
/** Groups in a field: what is longer than 64 bytes would make the hash several times as large. */
const GROUPS_PER_FIELD = 8
const GROUP_FIELDS = Math.ceil(BUCKET_GROUPS / GROUPS_PER_FIELD)

/** The part of the exchange's script that keeps the levels of buckets: as `BUCKET_PARTS` of the contract says. */
export const BUCKET: string = [
  // Of a hash ':b' is what `state` is made of, ':0' to ':3' the groups, and each node's field what it has said of its cells. Ordinals are
  // packed as differences, the first one to the base or, of a node, to the cell in which all began. No base is 0, before which there are no cells.
  `local GROUP_FIELDS = {${Array.from({ length: GROUP_FIELDS }, (_, place) => `':${place}'`).join(', ')}}

local mine = request.node`,
  // A node of ours has 16 hexadecimal digits for a name. Half as long it makes a quarter of a busy key's memory.
  `if #mine == 16 and not string.find(mine, '[^0-9a-f]') then
  mine = '=' .. string.gsub(mine, '..', function(digits) return string.char(tonumber(digits, 16)) end)
end

local function isUnits(value)
  return type(value) == 'number' and value >= 0 and value <= ${MOST_UNITS}
end
`,
  // A flat list of numbers. Raises an error for anything else.
  `local function unpacked(text)
  if not text or text == '' then return {} end
  if #text > ${LONGEST_FIELD} then error() end
  local list = cmsgpack.unpack(text)
  if type(list) ~= 'table' then error() end
  for _, value in ipairs(list) do
    if type(value) ~= 'number' or not (value > -1e15 and value <= ${MOST_UNITS}) then error() end
  end
  return list
end
`,
  // Cells as { ordinal, taken, given, refused }, ascending: packed as 0, ordinal, taken, …, or with a 1 before and what was refunded of
  // each, or a 2 and what was refused too.
  `local function readCells(text, from)
  local flat, cells = unpacked(text), {}
  local step, ordinal = 2 + (flat[1] == 1 and 1 or flat[1] == 2 and 2 or 0), from
  if #flat > 0 and (#flat - 1) % step ~= 0 then error() end
  for i = 2, #flat, step do
    local taken, given, refused = flat[i + 1], step > 2 and flat[i + 2] or 0, step > 3 and flat[i + 3] or 0
    ordinal = ordinal + flat[i]
    if flat[i] % 1 ~= 0 or i > 2 and flat[i] < 1 or not isUnits(taken) or not isUnits(given) or not isUnits(refused) then error() end
    cells[#cells + 1] = { ordinal, taken, given, refused }
  end
  return cells
end

local function packCells(cells, from, first, last)
  if first > last then return '' end
  local kind = 0
  for i = first, last do kind = math.max(kind, cells[i][4] > 0 and 2 or cells[i][3] > 0 and 1 or 0) end
  local flat, ordinal = { kind }, from
  for i = first, last do
    local cell = cells[i]
    flat[#flat + 1] = cell[1] - ordinal
    flat[#flat + 1] = cell[2]
    if kind > 0 then flat[#flat + 1] = cell[3] end
    if kind > 1 then flat[#flat + 1] = cell[4] end
    ordinal = cell[1]
  end
  return cmsgpack.pack(flat)
end
`,
  `local function readState(known, width)
  local flat = unpacked(known[1])
  if #flat == 0 then return nil end
  if #flat ~= 12 or flat[11] % 1 ~= 0 then error() end
  for i = 1, 5 do
    if flat[i] % 1 ~= 0 then error() end
  end
  local origin = flat[1]
  local start = origin * width
  local state = { origin = origin, base = origin + flat[2], written = origin + flat[3], held = origin + flat[4], announced = start + flat[5], hot = flat[6] == 0 and 0 or start + flat[6], level = flat[7], taken = flat[8], given = flat[9], refused = flat[10], floorAt = origin + flat[11], floor = flat[12], groups = {}, fields = 0 }
  if not (isUnits(state.level) and isUnits(state.taken) and isUnits(state.given) and isUnits(state.refused) and isUnits(state.floor)) then error() end
  for i = 1, #GROUP_FIELDS do
    if known[i + 2] and known[i + 2] ~= '' then
      state.fields = i
      for _, group in ipairs(readCells(known[i + 2], state.base)) do
        local before = state.groups[#state.groups]
        if before and before[1] >= group[1] then error() end
        state.groups[#state.groups + 1] = group
      end
    end
  end
  return state
end
`,
  // Times to a millisecond, and both they and cells as differences: they are short.
  `local function packState(state, width)
  local origin = state.origin
  local start = origin * width
  local hot = state.hot == 0 and 0 or math.max(1, math.ceil(state.hot - start))
  return cmsgpack.pack({ origin, state.base - origin, state.written - origin, state.held - origin, math.floor(state.announced - start), hot, state.level, state.taken, state.given, state.refused, state.floor > 0 and state.floorAt - origin or 0, state.floor })
end
`,
  `local function drained(level, cells, drain)
  return math.max(0, level - cells * drain)
end

local function levelBefore(state, at, level, ordinal, drain)
  level = drained(level, ordinal - at, drain)
  if state.floor > 0 and state.floorAt >= at and state.floorAt < ordinal then return math.max(level, drained(state.floor, ordinal - state.floorAt, drain)) end
  return level
end

local function levelAt(state, running, drain)
  local at, level = state.base, state.level
  for _, group in ipairs(state.groups) do
    if group[1] > running then break end
    level = levelBefore(state, at, level, group[1], drain) + group[2] - group[3]
    at = group[1]
  end
  level = drained(level, running - at, drain)
  if state.floor > 0 and state.floorAt >= at and state.floorAt <= running then return math.max(level, drained(state.floor, running - state.floorAt, drain)) end
  return level
end
`,
  // Adds what is old to the level, unless the nodes may still bring what is older.
  `local function fold(state, running, span, drain)
  if running < state.held then return end
  local over, groups = 0, state.groups
  while over < #groups and groups[over + 1][1] < running - span do
    over = over + 1
    local group = groups[over]
    state.level = levelBefore(state, state.base, state.level, group[1], drain) + group[2] - group[3]
    state.base = group[1]
    if state.floorAt < state.base then state.floor = 0 end
  end
  if over == 0 then return end
  local kept = {}
  for i = over + 1, #groups do kept[#kept + 1] = groups[i] end
  state.groups = kept
end

local function groupAt(state, ordinal, span, drain)
  local groups = state.groups
  local place = #groups
  while place > 0 and groups[place][1] > ordinal do place = place - 1 end
  if place > 0 then
    local found = groups[place]
    local since = ordinal - found[1]
    local apart = state.floor > 0 and state.floorAt >= found[1] and state.floorAt < ordinal
    if since < math.max(1, math.floor(span / ${FINE_PARTS})) and not apart then return found end
    if since < math.max(1, math.floor(span / ${BUCKET_PARTS})) and not apart and levelAt(state, found[1], drain) >= since * drain then return found end
  end
  local group = { ordinal, 0, 0, 0 }
  table.insert(groups, place + 1, group)
  return group
end

local function joinOldest(groups)
  local gone = table.remove(groups, 2)
  groups[1][2], groups[1][3] = groups[1][2] + gone[2], groups[1][3] + gone[3]
end
`,
  `local function findCell(cells, ordinal)
  local place = #cells
  while place > 0 and cells[place][1] > ordinal do place = place - 1 end
  local cell = cells[place]
  if cell and cell[1] == ordinal then return cell end
  cell = { ordinal, 0, 0, 0 }
  table.insert(cells, place + 1, cell)
  return cell
end
`,
  // Takes a node's counts over; returns the units newly taken, and whether anything has grown.
  `local function write(state, own, entries, place, final, running, span, drain)
  local units, grown = 0, false
  for i = place, final, 5 do
    local ordinal, taken, given, refused = entries[i], entries[i + 1], entries[i + 2], entries[i + 3]
    if ordinal > state.base and (taken > 0 or given > 0 or refused > 0) then
      local cell = findCell(own, ordinal)
      local moreTaken, moreGiven = math.max(0, taken - cell[2]), math.max(0, given - cell[3])
      if refused > cell[4] then
        state.refused, cell[4], grown = state.refused + refused - cell[4], refused, true
      end
      if moreTaken > 0 or moreGiven > 0 then
        cell[2], cell[3] = cell[2] + moreTaken, cell[3] + moreGiven
        local group = groupAt(state, math.min(ordinal, running), span, drain)
        group[2] = group[2] + moreTaken
        group[3] = math.min(group[2], group[3] + moreGiven)
        state.taken = state.taken + moreTaken
        state.given = math.min(state.taken, state.given + moreGiven)
        units, grown = units + moreTaken, true
      end
    end
  end
  while #state.groups > ${BUCKET_GROUPS} do joinOldest(state.groups) end
  return units, grown
end
`,
  // Takes up what a node knows to be in the bucket though it was lost here. Returns whether there was any.
  `local function raise(state, entries, place, final, running, drain)
  local raised = false
  for i = place, final, 5 do
    local ordinal, level = entries[i], entries[i + 4]
    if level > 0 and ordinal > state.base and ordinal <= running and drained(level, running - ordinal, drain) > levelAt(state, running, drain) then
      state.floorAt, state.floor, raised = ordinal, level, true
    end
  end
  return raised
end
`,
  // Forgets a debt beyond what the policy remembers: of the newest units, as if they had been refunded.
  `local function forgive(state, excess)
  for i = #state.groups, 1, -1 do
    local group = state.groups[i]
    local cut = math.min(excess, group[2] - group[3])
    group[3], excess = group[3] + cut, excess - cut
    if excess <= 0 then return end
  end
  state.level = math.max(0, state.level - excess)
end
`,
  // Of a window in the other script: see there. Here it stands for buckets.
  `function sliding(policy, label, count, entries, place)
  local width, cells, limit, hot, ttl, drain, maxDebt = policy[2], policy[3], policy[4], policy[5], policy[6], policy[7], policy[8]
  at = at + 1
  local hash, final = KEYS[at], place + 5 * count - 1
  local known = sound('HMGET', hash, ':b', mine, unpack(GROUP_FIELDS))
  local running, sends = math.floor(now / width), false
  for i = place, final, 5 do sends = sends or entries[i + 1] > 0 or entries[i + 2] > 0 or entries[i + 3] > 0 or entries[i + 4] > 0 end
  local fine, state = pcall(readState, known, width)
  local own = {}
  if fine and state and sends then fine, own = pcall(readCells, known[2], state.origin) end
  if not fine then
    lose(hash, hash)
    state, own = nil, {}
  end
  local span = drain > 0 and math.min(cells, math.ceil(limit / drain)) or cells
  state = state or { base = 0, level = 0, written = running, held = running + span, taken = 0, given = 0, refused = 0, floorAt = running, floor = 0, announced = now - 10, hot = 0, origin = running, groups = {}, fields = 0 }
  local news = false
  if sends then
    if running - state.written > span / 2 then state.held = running + span end
    state.written = math.max(state.written, running)
    fold(state, running, span, drain)
    local kept = {}
    for _, cell in ipairs(own) do
      if cell[1] > state.base then kept[#kept + 1] = cell end
    end
    own = kept
    local before = levelAt(state, running, drain)
    local units, grown = write(state, own, entries, place, final, running, span, drain)
    grown = raise(state, entries, place, final, running, drain) or grown
    local after = levelAt(state, running, drain)
    if maxDebt and after > limit + maxDebt then
      forgive(state, after - limit - maxDebt)
      after = levelAt(state, running, drain)
    end
    if grown then`,
  // It has run down since the running cell began: whether a unit still fits is a matter of now.
  `      local since = drain * (now / width - running)
      local full = after - since > limit - 1
      if units > 0 then
        news = after - since >= hot and units >= 2 and units >= limit / 20
        if full and (before - since <= limit - 1 or not (state.announced <= now and now - state.announced < 10)) then news = true end
        if before - since < hot / 2 then state.hot = 0 end
        if after - since >= hot and not (state.hot > now + ttl and state.hot <= now + 4 * ttl) then
          if state.hot == 0 then news = true end
          state.hot = now + 2 * ttl
          markHot(policy, labelOf(label, policy, hash), '', state.hot)
        end
        if news and full then state.announced = now end
      end
      local fields = { hash, ':b', packState(state, width), mine, packCells(own, state.origin, 1, #own) }
      local groups = state.groups
      for i = 1, math.max(state.fields, math.ceil(#groups / ${GROUPS_PER_FIELD})) do
        fields[#fields + 1] = GROUP_FIELDS[i]
        fields[#fields + 1] = packCells(groups, state.base, ${GROUPS_PER_FIELD} * (i - 1) + 1, math.min(#groups, ${GROUPS_PER_FIELD} * i))
      end
      call('HSET', unpack(fields))
      local empty = drain > 0 and after / drain * width or 0
      call('PEXPIRE', hash, string.format('%.0f', math.min(${FAR}, math.ceil(ttl + empty))))
    end
  end
  local text = number(running) .. ',' .. number(state.taken) .. ',' .. number(state.given) .. ',' .. number(levelAt(state, running, drain)) .. (state.refused > 0 and ',' .. number(state.refused) or '')
  if news then announceTotal(policy, labelOf(label, policy, hash), text) end
  return text
end
`,
].join('\n')
