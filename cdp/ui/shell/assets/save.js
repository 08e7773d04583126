// Saves the figure of a page as it is on screen: the layers that Plotly drew as one SVG, or that as a PNG of twice the size.
export default function ({ parentElement, data }) {
  for (const button of parentElement.querySelectorAll("button"))
    button.onclick = () => save(data.key, button.dataset.format)
}

function save(key, format) {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`)
  if (!plot) return
  const { width, height } = plot.getBoundingClientRect()
  const layers = [...plot.querySelectorAll(".main-svg")].map((layer) => new XMLSerializer().serializeToString(layer))
  const page = getComputedStyle(document.querySelector(".stApp")).backgroundColor
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
    <rect width="100%" height="100%" fill="${page}"/>${layers.join("")}</svg>`
  const vector = new Blob([svg], { type: "image/svg+xml" })
  if (format === "svg") return hand(vector, `${key}.svg`)

  const image = new Image()
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height })
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height)
    canvas.toBlob((pixels) => hand(pixels, `${key}.png`))
  }
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`
}

function hand(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name })
  link.click()
  URL.revokeObjectURL(link.href)
}
