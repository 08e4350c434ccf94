import type pc from 'picocolors'

/** Functions that paint text, or leave it as it is where there are no colors. */
export type Colors = ReturnType<typeof pc.createColors>
