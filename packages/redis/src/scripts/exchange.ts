import { MOST_HOT } from '../keys/keys.ts'
import { FIXED } from './fixed-window.ts'
import { FAR, PRELUDE, SEQUENCE_BEFORE } from './prelude.ts'

/**
 * Counts and blocks of one shard.
 *
 * KEYS: sequence, log, ends, keep, hot, hand, resets. Then:
 * - for each block that may grow, the count of the key's blocks;
 * - for each reset, that count and all keys with data of the key;
 * - for each group of plain entries, and for each other entry of a fixed window, all counters and after them all cells;
 * - for each entry of a sliding window or a bucket, its hash. If an entry brings a reset, the keys of a reset come before its own.
 *
 * ARGV[1], JSON: node, sequence, sequenceTtl, now (the processes' time, or nothing), prefix (of the shard's keys), channel (or false), and
 * - policies: [id, width, cells, limit, hot, ttl, and for a bucket: drain, maxDebt or false];
 * - blocks: [policy, label, kind, remaining, the key's last reset or 0, 1 if manual or 0, and for one that may grow: factor, max, memory;
 * for a reset: its number of keys];
 * - plain: plain entries as one flat list of groups: policy, ordinal, number of entries, and for each the units taken as a text;
 * - entries: other entries as one flat list: policy, label (0 if the Redis key contains it), number of cells, and for each ordinal, taken,
 * given and, for a bucket, rejected, level;
 * - rare: false, or for the entries that need it, by their index in that list: the key's last reset or 0, its number of keys, 1 to request
 * the other processes' counts or 0.
 *
 * Reply: seconds, microseconds, sequence before, then for each block its remaining time, and for each entry, plain ones first,
 * `blocked|cells`, and if needed `|1 if the block is manual|a reset that the process has not received`. Cells are `ordinal,taken,given,…`
 * or `ordinal;taken,taken,…`, or only the units taken if there are no other values. The texts are short because making them takes most of
 * the script's time. A list of names follows if values can't be read.
 */
export const EXCHANGE: string = exchangeWith('')

/**
 * The script with the code for other entries.
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
    // Checked once per call, because usually no key is blocked or was reset lately.
    `local changes = #request.blocks > 0 or request.rare
local blocks = (changes or redis.pcall('ZCARD', KEEP) ~= 0) and blockList()
local resets = blocks and (changes or redis.pcall('ZCARD', RESETS) ~= 0)
`,
    // The time of the reset after which an entry's totals were counted. Announcements contain it.
    `local epochNow

local function announceTotal(policy, label, content)
  announce(totalNews, policy, label, epochNow and content .. '|' .. number(epochNow) or content)
end
`,
    // The counts of a key are lost. Each process with counts of the key sends them again, even the process of this call, which may only
    // have read.
    `local function announceLoss(policy, label)
  announce(lossNews, policy, label, epochNow and '|' .. number(epochNow) or '')
end
`,
    // The last cell that a reset applies to. See 'lastCellOf' of core.
    `local function lastCell(policy, epoch)
  return math.floor(epoch / policy[2]) + 1
end
`,
    // A key's last reset, as long as processes may have counts from before it. Otherwise 0.
    `local function epochOf(policy, member)
  local epoch = blocks.epoch(member)
  if epoch > 0 and (lastCell(policy, epoch) + 1) * policy[2] + policy[6] <= now then return 0 end
  return epoch
end
`,
    // The last reset of a key that the sender of a cell has not received, or nothing.
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
    // Resets a key: deletes its data, and its block unless that is manual. 'count' is its number of keys.
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
    // From here on, all these sets have the right type.
    `  blocks.version()
  blocks.forget()
  for _, part in ipairs({ ENDS, HAND, RESETS }) do sound('ZCARD', part) end
  for _, change in ipairs(request.blocks) do reply[#reply + 1] = number(changeBlock(change)) end
end
`,
    // Keys that came near their limit in this call: score and member in turn. The script keeps no more than a starting process receives. It
    // removes expired ones in small steps, because removing a million at once would block the server.
    `local hotMembers, hotUntil, roomForHot = {}, 0, nil

local function markHot(policy, label, suffix, untilThen)
  if roomForHot == nil then
    local over = sound('ZRANGEBYSCORE', HOT, '-inf', number(now), 'LIMIT', 0, 100)
    if #over > 0 then call('ZREM', HOT, unpack(over)) end
    local size = sound('ZCARD', HOT)`,
    // Many more than this script ever adds, so another program wrote them.
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
    // Counted before a reset, so the script writes nothing of it.
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
    // An announcement that is not permitted, or has no listener, must not undo counts.
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
