import { MOST_HOT } from './keys.ts'
import { FIXED } from './lua-fixed.ts'
import { PRELUDE } from './lua-prelude.ts'
import { SLIDING } from './lua-sliding.ts'

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
 * is nothing else to say: the script's time goes mostly into making texts.
 */
export const EXCHANGE: string = `${PRELUDE}
local reply = { clock[1], clock[2], before or '' }
local policies = request.policies
local at = 5

-- The caller's key, from the name of its Redis key: only few entries need it.
local function labelOf(label, policy, key, ordinal)
  if label ~= 0 then return label end
  local start = #request.prefix + #policy[1] + 4
  return string.sub(key, start, ordinal and -2 - #ordinal or -1)
end

-- What others should hear of: for each policy, labels and contents in turn. They go out together at the end.
local blockNews, totalNews = {}, {}

local function announce(news, policy, label, content)
  local list = news[policy]
  if not list then
    list = {}
    news[policy] = list
  end
  list[#list + 1] = label
  list[#list + 1] = content
end

-- An announcement that is not permitted, or finds no listener, must not undo counts.
local function publish(kind, news)
  if not request.channel then return end
  for policy, list in pairs(news) do
    redis.pcall('PUBLISH', request.channel, kind .. '\\n' .. request.node .. '\\n' .. policy[1] .. '\\n' .. table.concat(list, '\\n'))
  end
end

local keepUntil = 0

local function changeBlock(change)
  local policy, label, kind, wanted = policies[change[1]], change[2], change[3], change[4]
  local factor, most, memory = change[5], change[6], change[7]
  if factor then at = at + 1 end
  local member = policy[1] .. '\\n' .. label
  local left = math.max(0, (tonumber(call('ZSCORE', ENDS, member)) or 0) - now)
  if kind == 'exceeded' and left > 0 or kind == 'restore' and left >= wanted or wanted == 0 and left == 0 then
    return left
  end
  if factor and kind == 'exceeded' then
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
  announce(blockNews, policy, label, number(wanted))
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

-- Keys that became hot in this call: score and member in turn. No more are kept than a node is handed at its start, and
-- what is over goes by and by: to forget a million at once would hold the server.
local hotMembers, hotUntil, roomForHot = {}, 0, nil

local function markHot(policy, label, suffix, untilThen)
  if roomForHot == nil then
    local over = call('ZRANGEBYSCORE', HOT, '-inf', number(now), 'LIMIT', 0, 100)
    if #over > 0 then call('ZREM', HOT, unpack(over)) end
    roomForHot = call('ZCARD', HOT) < ${MOST_HOT}
  end
  if not roomForHot then return end
  hotUntil = math.max(hotUntil, untilThen)
  hotMembers[#hotMembers + 1] = number(untilThen)
  hotMembers[#hotMembers + 1] = policy[1] .. '\\n' .. label .. '\\n' .. suffix
end

${FIXED}
${SLIDING}
plain(request.plain)
local entries = request.entries
local place, final = 1, #entries
while place <= final do
  local policy, label, atMost, count = policies[entries[place]], entries[place + 1], entries[place + 2], entries[place + 3]
  local granted, text, key, ordinal = (policy[3] == 1 and fixed or sliding)(policy, label, atMost, count, entries, place + 4)
  reply[#reply + 1] = (granted and '1|' or '0|') .. number(anyBlocks and blocked(policy, labelOf(label, policy, key, ordinal)) or 0) .. '|' .. text
  place = place + 4 + 3 * count
end

publish('b', blockNews)
publish('t', totalNews)
if hotUntil > 0 then
  call('ZADD', HOT, unpack(hotMembers))
  expireAtLeast(HOT, math.max(1, hotUntil - now))
end
return reply
`
