import { MOST_HOT } from '../keys/keys.ts'
import { FIXED } from './fixed-window.ts'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/**
 * Counts and blocks of one bucket.
 *
 * KEYS: sequence, log, ends, keep, hot; then for each block that may grow, how often the key was blocked; then, for each
 * group of plain entries and for each other entry of a fixed window, all counters and after them all cells; of a sliding
 * window, the window's hash.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the nodes' time, or nothing), prefix (of the bucket's keys), channel (or
 * false), policies [id, width, cells, limit, hot, ttl], blocks [policy, label, kind, remaining, and of one that may grow:
 * factor, max, memory], plain entries as one flat list of groups: policy, ordinal, how many, and for each the units taken as
 * a text; other entries as one flat list: policy, label (0 when the Redis key holds it), atMost or -1, number of cells, and
 * for each ordinal, taken, given.
 *
 * Reply: seconds, microseconds, sequence before, then for each block its remaining time, and for each entry, plain ones first,
 * `granted|blocked|cells`, cells being `ordinal,taken,given,…` or `ordinal;taken,taken,…`, or just the units taken when there
 * is nothing else to say: the script's time goes mostly into making texts. At the end, when something could not be read, a list
 * of names.
 */
export const EXCHANGE: string = exchangeWith('')

/**
 * The same with what else it counts.
 *
 * @param sliding Lua that sets `sliding`, for entries of sliding windows
 */
export function exchangeWith(sliding: string): string {
  return [
    `${PRELUDE}
local reply = { clock[1], clock[2], '' }
local policies = request.policies
local at = 5
`,
    // The caller's key, from the name of its Redis key: only few entries need it.
    `local function labelOf(label, policy, key, ordinal)
  if label ~= 0 then return label end
  local start = #request.prefix + #policy[1] + 4
  return string.sub(key, start, ordinal and -2 - #ordinal or -1)
end
`,
    // What others should hear of: for each policy, labels and contents in turn. They go out together at the end.
    `local blockNews, totalNews = {}, {}

local function announce(news, policy, label, content)
  local list = news[policy]
  if not list then
    list = {}
    news[policy] = list
  end
  list[#list + 1] = label
  list[#list + 1] = content
end
`,
    // Looked at once a call: as a rule nothing is blocked.
    `local blocks = (#request.blocks > 0 or redis.pcall('ZCARD', ENDS) ~= 0) and blockList()

if #request.blocks > 0 then
  local keepUntil = 0

  local function changeBlock(change)
    local policy, label, kind, wanted = policies[change[1]], change[2], change[3], change[4]
    local factor, most, memory = change[5], change[6], change[7]
    if factor then at = at + 1 end
    local member = policy[1] .. '\\n' .. label
    local left = blocks.left(member)
    if kind == 'exceeded' and left > 0 or kind == 'restore' and left >= wanted or wanted == 0 and left == 0 then
      return left
    end
    if factor and kind == 'exceeded' then
      local text = sound('GET', KEYS[at])
      local level = text and #text <= 15 and string.find(text, '^%d+$') and tonumber(text)
      if text and not level then lose(KEYS[at]) end
      level = level or 0
      wanted = math.min(math.max(wanted, most), wanted * factor ^ level)
      call('SET', KEYS[at], level + 1, 'PX', math.ceil(wanted + memory))
    end
    local version = call('ZINCRBY', LOG, 1, '')
    call('ZADD', LOG, version, member)
    if wanted > 0 then
      call('ZADD', ENDS, number(now + wanted), member)
    else
      call('ZREM', ENDS, member)
    end`,
    // Who missed a block's lift must still hear of it for as long as he would hold the block.
    `    local kept = tonumber(call('ZSCORE', KEEP, member)) or 0
    local keep = kept <= now + ${FAR} and math.max(now + wanted, kept) or now + wanted
    call('ZADD', KEEP, number(keep), member)
    keepUntil = math.max(keepUntil, keep)
    announce(blockNews, policy, label, number(wanted))
    return wanted
  end
`,
    // All three sets are what they should be from here on.
    `  blocks.version()
  blocks.forget()
  sound('ZCARD', ENDS)
  for _, change in ipairs(request.blocks) do reply[#reply + 1] = number(changeBlock(change)) end
  if keepUntil > 0 then
    for _, name in ipairs({ LOG, ENDS, KEEP }) do expireAtLeast(name, keepUntil - now + HOUR) end
  end
end
`,
    // Keys that became hot in this call: score and member in turn. No more are kept than a node is handed at its start, and
    // what is over goes by and by: to forget a million at once would hold the server.
    `local hotMembers, hotUntil, roomForHot = {}, 0, nil

local function markHot(policy, label, suffix, untilThen)
  if roomForHot == nil then
    local over = sound('ZRANGEBYSCORE', HOT, '-inf', number(now), 'LIMIT', 0, 100)
    if #over > 0 then call('ZREM', HOT, unpack(over)) end
    local size = sound('ZCARD', HOT)`,
    // Many more than there ever are here: somebody else put them there.
    `    if size > 2 * ${MOST_HOT} then
      lose(HOT, HOT)
      size = 0
    end
    roomForHot = size < ${MOST_HOT}
  end
  if not roomForHot then return end
  hotUntil = math.max(hotUntil, untilThen)
  hotMembers[#hotMembers + 1] = number(untilThen)
  hotMembers[#hotMembers + 1] = policy[1] .. '\\n' .. label .. '\\n' .. suffix
end

${FIXED}
local sliding
${sliding}

plain(request.plain)
local entries = request.entries
local place, final = 1, #entries
while place <= final do
  local policy, label, atMost, count = policies[entries[place]], entries[place + 1], entries[place + 2], entries[place + 3]
  local granted, text, key, ordinal = (policy[3] == 1 and fixed or sliding)(policy, label, atMost, count, entries, place + 4)
  reply[#reply + 1] = (granted and '1|' or '0|') .. number(blocks and blocks.left(policy[1] .. '\\n' .. labelOf(label, policy, key, ordinal)) or 0) .. '|' .. text
  place = place + 4 + 3 * count
end

reply[3] = ${SEQUENCE_BEFORE}
if #lost > 0 then reply[#reply + 1] = lost end
if request.channel and (next(blockNews) or next(totalNews)) then
  for _, kind in ipairs({ 'b', 't' }) do
    for policy, list in pairs(kind == 'b' and blockNews or totalNews) do`,
    // An announcement that is not permitted, or finds no listener, must not undo counts.
    `      redis.pcall('PUBLISH', request.channel, kind .. '\\n' .. request.node .. '\\n' .. policy[1] .. '\\n' .. table.concat(list, '\\n'))
    end
  end
end
if hotUntil > 0 then
  call('ZADD', HOT, unpack(hotMembers))
  expireAtLeast(HOT, math.max(1, hotUntil - now))
end
return reply
`,
  ].join('\n')
}
