import { MOST_HOT } from '../keys/keys.ts'
import { FIXED } from './fixed-window.ts'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/**
 * Counts and blocks of one bucket.
 *
 * KEYS: sequence, log, ends, keep, hot, hand, resets; then for each block that may grow, how often the key was blocked, and
 * for each reset that and all that is kept of the key; then, for each
 * group of plain entries and for each other entry of a fixed window, all counters and after them all cells; of a sliding
 * window or a bucket, its hash; before them, of an entry that tells of a reset, the same as for a reset.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the nodes' time, or nothing), prefix (of the bucket's keys), channel (or
 * false), policies [id, width, cells, limit, hot, ttl, and of a bucket: drain, maxDebt or false], blocks [policy, label, kind, remaining, the key's last reset or 0, 1 when
 * set by hand or 0, and of one that may grow: factor, max, memory; of a reset: how many keys are of it], plain entries as one flat list of groups: policy, ordinal, how many, and for each the units taken as
 * a text; other entries as one flat list: policy, label (0 when the Redis key holds it), number of cells, and
 * for each ordinal, taken, given and, of a bucket, rejected, level; rare: false, or of the entries that need it, by their place in that list: the key's last
 * reset or 0, how many keys are of that, 1 to ask the other nodes or 0.
 *
 * Reply: seconds, microseconds, sequence before, then for each block its remaining time, and for each entry, plain ones first,
 * `blocked|cells`, and where needed `|1 when blocked by hand|a reset that the node has not heard of`; cells being `ordinal,taken,given,…` or `ordinal;taken,taken,…`, or just the units taken when there
 * is nothing else to say: the script's time goes mostly into making texts. At the end, when something could not be read, a list
 * of names.
 */
export const EXCHANGE: string = exchangeWith('')

/**
 * The same with what else it counts.
 *
 * @param sliding Lua that sets `sliding`, for entries of sliding windows, or of buckets
 */
export function exchangeWith(sliding: string): string {
  return [
    `${PRELUDE}
local reply = { clock[1], clock[2], '' }
local policies = request.policies
local at = 7
`,
    // The caller's key, from the name of its Redis key: only few entries need it.
    `local function labelOf(label, policy, key, ordinal)
  if label ~= 0 then return label end
  local start = #request.prefix + #policy[1] + 4
  return string.sub(key, start, ordinal and -2 - #ordinal or -1)
end
`,
    // News for other processes: for each policy, labels and contents in turn. They are sent together at the end.
    `local blockNews, totalNews, askNews, lossNews = {}, {}, {}, {}

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
    // Looked at once a call: as a rule nothing is blocked, and nothing was reset lately.
    `local changes = #request.blocks > 0 or request.rare
local blocks = (changes or redis.pcall('ZCARD', KEEP) ~= 0) and blockList()
local resets = blocks and (changes or redis.pcall('ZCARD', RESETS) ~= 0)
`,
    // The moment of the reset that the totals of an entry are of after, for those who hear of them.
    `local epochNow

local function announceTotal(policy, label, content)
  announce(totalNews, policy, label, epochNow and content .. '|' .. number(epochNow) or content)
end
`,
    // The counts of a key are lost. Each process that has some sends them again, also the one that met the loss: it may only have read.
    `local function announceLoss(policy, label)
  announce(lossNews, policy, label, epochNow and '|' .. number(epochNow) or '')
end
`,
    // The last cell that a reset concerns; see 'lastCellOf' of core.
    `local function lastCell(policy, epoch)
  return math.floor(epoch / policy[2]) + 1
end
`,
    // A key's last reset, as long as nodes may hold counts of before it; 0 for none.
    `local function epochOf(policy, member)
  local epoch = blocks.epoch(member)
  if epoch > 0 and (lastCell(policy, epoch) + 1) * policy[2] + policy[6] <= now then return 0 end
  return epoch
end
`,
    // The last reset of a key that the sender of a cell has not heard of, or nothing.
    `local function newerReset(policy, member, ordinal, known)
  local epoch = epochOf(policy, member)
  return epoch > known and (not ordinal or ordinal <= lastCell(policy, epoch)) and epoch or nil
end

local changeBlock, resetKey
if changes then
  local keepUntil = 0

  local function put(policy, label, member, wanted, keepFor, byHand, epoch)
    local version = call('ZINCRBY', LOG, 1, '')
    call('ZADD', LOG, version, member)
    if wanted > 0 then
      call('ZADD', ENDS, number(now + wanted), member)
    else
      call('ZREM', ENDS, member)
    end
    if byHand then
      call('ZADD', HAND, 1, member)
    else
      call('ZREM', HAND, member)
    end
    if epoch then call('ZADD', RESETS, number(epoch), member) end`,
    // A process that missed the end of a block must still receive it for as long as it would apply the block.
    `    local kept = tonumber(call('ZSCORE', KEEP, member)) or 0
    local keep = kept <= now + ${FAR} and math.max(now + keepFor, kept) or now + keepFor
    call('ZADD', KEEP, number(keep), member)
    if keep > keepUntil then
      keepUntil = keep
      for _, name in ipairs({ LOG, ENDS, KEEP, HAND, RESETS }) do expireAtLeast(name, keepUntil - now + HOUR) end
    end
    announce(blockNews, policy, label, blocks.text(member, wanted, byHand, epoch or epochOf(policy, member)))
    return wanted
  end
`,
    // The counts of a key begin anew: what is kept of it goes, and its block, unless that was set by hand. 'count' keys are of it.
    `  function resetKey(policy, label, epoch, count)
    local first = at + 1
    at = at + count
    local member = policy[1] .. '\\n' .. label
    local left = blocks.left(member)
    if epoch <= epochOf(policy, member) then return left end
    for i = first, at do call('PEXPIRE', KEYS[i], 0) end
    local byHand = left > 0 and blocks.byHand(member)
    local width, ttl = policy[2], policy[6]
    local life = math.min((lastCell(policy, epoch) + 1) * width - now + ttl, 4 * (policy[3] * width + ttl))
    if not byHand then left = 0 end
    return put(policy, label, member, left, math.max(0, life, left), byHand, epoch)
  end

  function changeBlock(change)
    local policy, label, kind, wanted, epoch, byHand = policies[change[1]], change[2], change[3], change[4], change[5], change[6] == 1
    if kind == 'reset' then return resetKey(policy, label, epoch, change[7]) end
    local factor, most, memory = change[7], change[8], change[9]
    if factor then at = at + 1 end
    local member = policy[1] .. '\\n' .. label
    local left = blocks.left(member)
    if kind == 'exceeded' and left > 0 or kind == 'restore' and left >= wanted or wanted == 0 and left == 0 then
      return left
    end
    if kind == 'exceeded' and epoch < epochOf(policy, member) then return left end
    if factor and kind == 'exceeded' then
      local text = sound('GET', KEYS[at])
      local level = text and #text <= 15 and string.find(text, '^%d+$') and tonumber(text)
      if text and not level then lose(KEYS[at]) end
      level = level or 0
      wanted = math.min(math.max(wanted, most), wanted * factor ^ level)
      call('SET', KEYS[at], level + 1, 'PX', math.ceil(wanted + memory))
    end
    return put(policy, label, member, wanted, wanted, kind == 'set' or kind == 'restore' and byHand)
  end
`,
    // All these sets are what they should be from here on.
    `  blocks.version()
  blocks.forget()
  for _, part in ipairs({ ENDS, HAND, RESETS }) do sound('ZCARD', part) end
  for _, change in ipairs(request.blocks) do reply[#reply + 1] = number(changeBlock(change)) end
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
  local policy, label, count = policies[entries[place]], entries[place + 1], entries[place + 2]
  local size = policy[7] and 5 or 3
  local rare = request.rare and request.rare[tostring(place - 1)]
  local epoch = rare and rare[1] or 0
  local member, newer
  if epoch > 0 then resetKey(policy, label, epoch, rare[2]) end
  if rare and rare[3] == 1 then announce(askNews, policy, label, '') end
  if blocks then member = policy[1] .. '\\n' .. labelOf(label, policy, KEYS[at + 1], policy[3] == 1 and count > 0 and textOfOrdinal(entries[place + 3]) or nil) end
  if resets then newer = newerReset(policy, member, count > 0 and entries[place + 3], epoch) end
  epochNow = newer or epoch > 0 and epoch or nil`,
    // Counted before a reset: nothing of it is written.
    `  if newer then
    for i = place + 3, place + 2 + size * count, size do
      for part = 1, size - 1 do entries[i + part] = 0 end
    end
  end
  local text = (policy[3] == 1 and fixed or sliding)(policy, label, count, entries, place + 3)
  local left = blocks and blocks.left(member) or 0
  local more = (newer or left > 0 and blocks.byHand(member)) and '|' .. (left > 0 and blocks.byHand(member) and '1' or '') .. '|' .. (newer and number(newer) or '') or ''
  reply[#reply + 1] = number(left) .. '|' .. text .. more
  place = place + 3 + size * count
end

reply[3] = ${SEQUENCE_BEFORE}
if #lost > 0 then reply[#reply + 1] = lost end
if request.channel and (next(blockNews) or next(totalNews) or next(askNews) or next(lossNews)) then
  local node = request.node
  for _, of in ipairs({ { 't', '', lossNews }, { 'b', node, blockNews }, { 't', node, totalNews }, { 'a', node, askNews } }) do
    for policy, list in pairs(of[3]) do`,
    // An announcement that is not permitted, or finds no listener, must not undo counts.
    `      redis.pcall('PUBLISH', request.channel, of[1] .. '\\n' .. of[2] .. '\\n' .. policy[1] .. '\\n' .. table.concat(list, '\\n'))
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
