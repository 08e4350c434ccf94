import { MOST_UNITS } from '../keys/keys.ts'
import { FAR } from './prelude.ts'

/** Bytes, enough for the parts of some thousand processes. */
const LONGEST_CELL = 262_144

/** The part of the script that counts fixed windows. */
export const FIXED: string = [
  `local search, sub, format = string.find, string.sub, string.format
`,
  // Converts as 'number' does, with the short form for most counts.
  `local function textOfCount(value)
  if value % 1 == 0 and value < 1e15 then return format('%d', value) end
  return format('%.17g', value)
end

local ordinalTexts = {}

local function textOfOrdinal(ordinal)
  local text = ordinalTexts[ordinal]
  if not text then
    text = textOfCount(ordinal)
    ordinalTexts[ordinal] = text
  end
  return text
end
`,
  // A count as a number, or nothing if it is invalid.
  `local function countOf(text)
  local value = tonumber(text)
  return value and value >= 0 and value <= ${MOST_UNITS} and value or nil
end
`,
  // Counts are stored as 'taken', or 'taken:given'. Nothing if they can't be read.
  `local function parse(text)
  local colon = search(text, ':', 1, true)
  if not colon then return countOf(text), 0 end
  local taken, given = countOf(sub(text, 1, colon - 1)), countOf(sub(text, colon + 1))
  if given then return taken, given end
end

local function textOfCounts(taken, given)
  if given == 0 then return textOfCount(taken) end
  return textOfCount(taken) .. ':' .. textOfCount(given)
end
`,
  // A cell is one text: 'counts node:counts node:counts …'. The first counts are the sum of all processes. The text ends with ' :hot' after
  // the key was announced as near its limit. Node ids contain neither spaces nor colons.
  `local mine = ' ' .. request.node .. ':'
local HOT_MARK = ' :hot'
`,
  // The counts of all processes, this process's counts, and their position in the text: up to the first space, and from first to before
  // behind. Nothing if the cell can't be read.
  `local function read(cell)
  if not cell then return 0, 0, 0, 0 end
  local space = #cell <= ${LONGEST_CELL} and search(cell, ' ', 1, true)
  if not space then return end
  local allTaken, allGiven = parse(sub(cell, 1, space - 1))
  if not allTaken then return end
  local place = search(cell, mine, space, true)
  if not place then return allTaken, allGiven, 0, 0, space end
  local first = place + #mine
  local behind = search(cell, ' ', first, true) or #cell + 1
  local taken, given = parse(sub(cell, first, behind - 1))`,
  // The sum is at least as large as each part, except for rounding errors.
  `  if not taken or taken > allTaken * (1 + 1e-9) + 1e-9 then return end
  return allTaken, allGiven, taken, given, space, first, behind
end
`,
  // The time until a cell expires. It counts from the cell's end, or from now if the cell is not the running one (late counts, a wrong
  // clock).
  `local function expiryOf(policy, ordinal)
  local width = policy[2]
  local ends = (ordinal + 1) * width
  local running = ends > now and ends <= now + width
  return format('%d', math.min(${FAR}, math.ceil(policy[6] + (running and ends - now or width)))), running
end
`,
  // Announces a key's total if it has passed a mark, or has grown by much at once (see `store/shapes/window.ts` of core). Returns true if
  // the key came near its limit and was not announced as such yet.
  `local function passed(policy, label, counter, cell, ordinal, before, after, taken, given)
  local ends, ordinalText = (ordinal + 1) * policy[2], textOfOrdinal(ordinal)
  local grown = after - before
  local large = after >= policy[5] and grown >= 2 and grown >= policy[4] / 20 and ends > now
  local hot = before < policy[5] and after >= policy[5] and ends > now and not (cell and search(cell, HOT_MARK, 1, true))
  if hot or before < policy[4] and after >= policy[4] or large then
    label = labelOf(label, policy, counter, ordinalText)
    if hot then markHot(policy, label, ordinalText, ends) end
    announceTotal(policy, label, ordinalText .. ',' .. textOfCount(taken) .. ',' .. textOfCount(given))
  end
  return hot
end
`,
  // Writes the counts of one process into a cell, and returns the totals. Uses only local variables and few conversions, because Redis
  // spends most of the script's time here. Only the cell counts. The counter is for people who look at the store.
  `local function write(policy, label, counter, key, cell, ordinal, expiry, running, taken, given, takenText)
  if not cell and takenText then
    local text = takenText .. mine .. takenText
    if taken >= policy[5] or taken >= policy[4] then
      if passed(policy, label, counter, nil, ordinal, 0, taken, taken, 0) then text = text .. HOT_MARK end
    end`,
  // If the key exists, MGET left it out because of its type. An empty text can't be read either.
  `    if not call('SET', key, text, 'PX', expiry, 'NX') then
      return write(policy, label, counter, key, '', ordinal, expiry, running, taken, given, takenText)
    end
    call('SET', counter, takenText, 'PX', expiry)
    return taken, 0
  end
  local allTaken, allGiven, ownTaken, ownGiven, space, first, behind = read(cell)
  if not allTaken then
    lose(key, key)
    allTaken, allGiven = write(policy, label, counter, key, false, ordinal, expiry, running, taken, given, takenText)`,
  // The new total may be larger than a process's counts. Then the process could not see from it that its own part is missing.
  `    announceLoss(policy, labelOf(label, policy, counter, textOfOrdinal(ordinal)))
    return allTaken, allGiven
  end
  if taken <= ownTaken and given <= ownGiven then return allTaken, allGiven end
  if taken < ownTaken then taken = ownTaken end
  if given < ownGiven then given = ownGiven end
  local before = allTaken - allGiven
  allTaken, allGiven = allTaken + taken - ownTaken, allGiven + given - ownGiven
  local after = allTaken - allGiven

  local text = textOfCounts(allTaken, allGiven)
  local own = textOfCounts(taken, given)
  if first then
    text = text .. sub(cell, space, first - 1) .. own .. sub(cell, behind)
  else
    text = text .. mine .. own .. (space and sub(cell, space) or '')
  end
  if after >= policy[5] or after >= policy[4] then
    if passed(policy, label, counter, cell, ordinal, before, after, allTaken, allGiven) then text = text .. HOT_MARK end
  end`,
  // Overwriting in place keeps the expiry, which is cheaper than setting it again. A string that grew would reserve twice its size.
  `  if space and running and #text == #cell then
    call('SETRANGE', key, 0, text)
  elseif space then
    call('SET', key, text, 'PX', expiry)
  elseif not call('SET', key, text, 'PX', expiry, 'NX') then
    return write(policy, label, counter, key, '', ordinal, expiry, running, taken, given, takenText)
  end`,
  // Adding shows if the counter is wrong.
  `  local shown = false
  if space and running and before % 1 == 0 and after % 1 == 0 and after < 1e15 then
    shown = redis.pcall('INCRBY', counter, format('%d', after - before))
  end
  if shown ~= after then
    if type(shown) == 'table' then lose(counter) end
    call('SET', counter, textOfCount(after), 'PX', expiry)
  end
  return allTaken, allGiven
end
`,
  // Plain entries: a process has used units in one cell and refunded none, as for most keys. A group contains each key once.
  `local function plain(entries)
  local place, final = 1, #entries
  while place < final do
    local policy, ordinal, count = policies[entries[place]], entries[place + 1], entries[place + 2]
    local cells = call('MGET', unpack(KEYS, at + count + 1, at + 2 * count))
    local expiry, running = expiryOf(policy, ordinal)
    local ordinalText = textOfOrdinal(ordinal)
    place = place + 2
    for i = 1, count do
      local text, counter = entries[place + i], KEYS[at + i]
      local member = blocks and policy[1] .. '\\n' .. labelOf(0, policy, counter, ordinalText)`,
  // Counted before a reset that the process has not received, so the script writes nothing of it.
  `      local newer = resets and newerReset(policy, member, ordinal, 0)
      epochNow = newer or nil
      local taken, given
      if newer then
        taken, given = write(policy, 0, counter, KEYS[at + count + i], cells[i], ordinal, expiry, running, 0, 0)
      else
        taken, given = write(policy, 0, counter, KEYS[at + count + i], cells[i], ordinal, expiry, running, tonumber(text), 0, text)
      end
      local left = blocks and blocks.left(member) or 0
      if left == 0 and not newer and given == 0 and taken % 1 == 0 and taken < 1e15 then
        reply[#reply + 1] = taken
      else
        local byHand = left > 0 and blocks.byHand(member)
        reply[#reply + 1] = number(left) .. '|' .. ordinalText .. ',' .. textOfCount(taken) .. ',' .. textOfCount(given) .. ((newer or byHand) and '|' .. (byHand and '1' or '') .. '|' .. (newer and number(newer) or '') or '')
      end
    end
    at, place = at + 2 * count, place + count + 1
  end
end

local function fixed(policy, label, count, entries, place)
  local cells = count == 0 and {} or call('MGET', unpack(KEYS, at + count + 1, at + 2 * count))
  local texts = {}
  for i = 1, count do
    local ordinal, taken, given = entries[place + 3 * i - 3], entries[place + 3 * i - 2], entries[place + 3 * i - 1]
    local expiry, running = expiryOf(policy, ordinal)
    local cell = i == 1 and cells[1] or call('MGET', KEYS[at + count + i])[1]
    taken, given = write(policy, label, KEYS[at + i], KEYS[at + count + i], cell, ordinal, expiry, running, taken, given)
    texts[i] = textOfOrdinal(ordinal) .. ',' .. textOfCount(taken) .. ',' .. textOfCount(given)
  end
  at = at + 2 * count
  return table.concat(texts, ',')
end
`,
].join('\n')
