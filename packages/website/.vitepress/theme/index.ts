import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { Scene } from './scene.ts'
import './colours.css'
import './scene.css'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component('Scene', Scene),
} satisfies Theme
