import { withBase } from 'vitepress'
import { defineComponent, h, onMounted, onUnmounted, ref } from 'vue'

/** Pixels before the viewport at which a scene is loaded. */
const AHEAD = 200

/** A scene of the playground. Its picture stays until the scene has something to show. */
export const Scene = defineComponent({
  props: {
    /** The search part of the playground's address. */
    address: { type: String, required: true },
    /** A description of the scene. */
    label: { type: String, required: true },
  },
  setup(props, { slots }) {
    const box = ref<HTMLElement>()
    const frame = ref<HTMLIFrameElement>()
    const near = ref(false)
    /** Height in pixels. 0 until the scene has reported it. */
    const height = ref(0)
    const told = ({ source, data }: MessageEvent<{ readonly weirHeight?: unknown } | undefined>): void => {
      if (source === null || source !== frame.value?.contentWindow) return
      if (typeof data?.weirHeight === 'number') height.value = data.weirHeight
    }
    let seen: IntersectionObserver | undefined
    onMounted(() => {
      addEventListener('message', told)
      seen = new IntersectionObserver(
        (entries) => {
          if (!entries.some(({ isIntersecting }) => isIntersecting)) return
          near.value = true
          seen?.disconnect()
        },
        { rootMargin: `${AHEAD}px` },
      )
      if (box.value !== undefined) seen.observe(box.value)
    })
    onUnmounted(() => {
      removeEventListener('message', told)
      seen?.disconnect()
    })
    return () =>
      h('div', { ref: box, class: 'weir-scene' }, [
        height.value === 0 ? slots['default']?.() : undefined,
        near.value
          ? h('iframe', {
              ref: frame,
              src: withBase(`/playground/index.html${props.address}`),
              title: props.label,
              style: { height: `${height.value}px` },
            })
          : undefined,
      ])
  },
})
