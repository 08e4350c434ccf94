const SLOTS = 16_384

/**
 * Returns hash tags for `count` shards that spread evenly over the slots of a Cluster, so that each primary gets its part. They are the
 * same in every process. Each tag contains the count, so that processes with another count don't share some of their counts by accident.
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
