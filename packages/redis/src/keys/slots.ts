const SLOTS = 16_384

/**
 * Hash tags for `count` buckets that spread evenly over the slots of a Cluster, so that each primary gets its part.
 * The same in every process. The count is part of each tag: nodes with another one share no counts by accident.
 */
export function evenTags(count: number): string[] {
  return Array.from({ length: count }, (_, bucket) => {
    const first = (bucket * SLOTS) / count
    const next = ((bucket + 1) * SLOTS) / count
    for (let attempt = 0; ; attempt++) {
      const tag = `${count}.${bucket}.${attempt}`
      const slot = slotOf(tag)
      if (slot >= first && slot < next) return tag
    }
  })
}

/** CRC16 (XMODEM) modulo the number of slots, as Redis Cluster assigns a hash tag to its slot. ASCII only. */
export function slotOf(tag: string): number {
  let crc = 0
  for (let i = 0; i < tag.length; i++) {
    crc ^= tag.charCodeAt(i) << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return (crc & 0xffff) % SLOTS
}
