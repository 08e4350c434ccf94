/** Who makes requests wait. */
export const CONTENDERS = ['weir', 'p-throttle', 'limiter', 'bottleneck'] as const
