import { constants, setPriority } from 'node:os'

setPriority(constants.priority.PRIORITY_LOW)
