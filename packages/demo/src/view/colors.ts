import type pc from 'picocolors'

/** Functions that paint text, or return it unchanged without colors. */
export type Colors = ReturnType<typeof pc.createColors>
