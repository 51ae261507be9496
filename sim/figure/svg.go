package figure

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// The size of a figure and of its letters, in pixels.
const (
	width, height         = 648.0, 324.0
	large, middle, little = 13.0, 11.0, 9.0
	// edge is the margin on all sides.
	edge = 6.0
)

// point is a point of the figure: y grows downwards.
type point struct{ X, Y float64 }

// rectangle is an area of the figure.
type rectangle struct{ Min, Max point }

// textWidth returns about how wide a text is in a viewer's sans-serif font, rounded up: the mean
// letter of common fonts is 0.5 to 0.55 of its size wide.
func textWidth(text string, size float64) float64 {
	return 0.62 * size * float64(utf8.RuneCountInString(text))
}

// plot is a figure that is being drawn.
type plot struct {
	out  strings.Builder
	area rectangle // between the axes
	x, y span
}

// place returns the point at which a value is drawn.
func (p *plot) place(x, y float64) point {
	return point{
		p.area.Min.X + (x-p.x.low)/(p.x.high-p.x.low)*(p.area.Max.X-p.area.Min.X),
		p.area.Max.Y - (y-p.y.low)/(p.y.high-p.y.low)*(p.area.Max.Y-p.area.Min.Y),
	}
}

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// text writes a line; anchor is start, middle or end, and turn an angle in degrees.
func (p *plot) text(at point, size float64, anchor string, turn float64, text string) {
	where := fmt.Sprintf(`x="%.1f" y="%.1f"`, at.X, at.Y)
	if turn != 0 {
		where = fmt.Sprintf(`transform="translate(%.1f %.1f) rotate(%.0f)"`, at.X, at.Y, turn)
	}
	p.add(`<text %s font-size="%.0f" text-anchor="%s">%s</text>`, where, size, anchor, html.EscapeString(text))
}

func (p *plot) line(points []point, color string, wide float64) {
	var path strings.Builder
	for _, at := range points {
		fmt.Fprintf(&path, "%.1f,%.1f ", at.X, at.Y)
	}
	p.add(`<polyline clip-path="url(#area)" fill="none" stroke="%s" stroke-width="%.1f" points="%s"/>`, color, wide, strings.TrimSpace(path.String()))
}

func (p *plot) circle(at point, color string) {
	p.add(`<circle clip-path="url(#area)" cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, at.X, at.Y, color)
}

func (p *plot) box(a, b point, color string) {
	p.add(`<rect clip-path="url(#area)" shape-rendering="crispEdges" x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>`,
		min(a.X, b.X), min(a.Y, b.Y), max(a.X, b.X)-min(a.X, b.X), max(a.Y, b.Y)-min(a.Y, b.Y), color)
}

// margin returns the width of the legend beside the plot.
func (c *Chart) margin() float64 {
	widest := 0.0
	for i := range c.Series {
		widest = max(widest, textWidth(c.Series[i].Name, little))
	}
	return widest + 32
}

// begin draws the common parts of all figures: title, axes with their marks, legend.
func (c *Chart) begin(x, y span, under []tick) *plot {
	if c.Low != c.High {
		y = span{c.Low, c.High}
	}
	beside := ticks(y.low, y.high)
	left := 0.0
	for _, t := range beside {
		left = max(left, textWidth(t.Label, little))
	}
	low := 0.0 // space for rotated names
	if turned(under) {
		for _, t := range under {
			low = max(low, 0.7*textWidth(t.Label, little)-little)
		}
	}
	p := &plot{x: x, y: y, area: rectangle{point{edge + left + 24, 30}, point{width - c.margin() - edge, height - 38 - low}}}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" fill="#000">`, width, height, width, height)
	p.add(`<rect width="100%%" height="100%%" fill="#fff"/><clipPath id="area"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></clipPath>`,
		p.area.Min.X, p.area.Min.Y-1, p.area.Max.X-p.area.Min.X, p.area.Max.Y-p.area.Min.Y+2)
	p.axes(under, beside)
	middleX, middleY := (p.area.Min.X+p.area.Max.X)/2, (p.area.Min.Y+p.area.Max.Y)/2
	p.text(point{middleX, 18}, large, "middle", 0, c.Title)
	p.text(point{middleX, height - edge}, middle, "middle", 0, c.X)
	p.text(point{edge + middle, middleY}, middle, "middle", -90, c.Y)
	for i := range c.Series {
		at := point{p.area.Max.X + 14, p.area.Min.Y + 6 + float64(i)*(little+5)}
		p.add(`<rect x="%.1f" y="%.1f" width="10" height="5" fill="%s"/>`, at.X, at.Y-5, palette(i))
		p.text(point{at.X + 14, at.Y}, little, "start", 0, c.Series[i].Name)
	}
	return p
}

// turned reports whether there are too many names to fit side by side, so that they are rotated.
func turned(names []tick) bool { return len(names) > 12 }

func (p *plot) axes(under, beside []tick) {
	for _, t := range beside {
		at := p.place(p.x.low, t.Value)
		p.add(`<path stroke="#e1e1e1" d="M%.1f %.1fH%.1f"/>`, at.X, at.Y, p.area.Max.X)
		p.text(point{at.X - 5, at.Y + little/3}, little, "end", 0, t.Label)
	}
	for _, t := range under {
		at := point{p.place(t.Value, 0).X, p.area.Max.Y}
		p.add(`<path stroke="#000" d="M%.1f %.1fv4"/>`, at.X, at.Y)
		if turned(under) {
			p.text(point{at.X + 3, at.Y + 12}, little, "end", -45, t.Label)
			continue
		}
		p.text(point{at.X, at.Y + 14}, little, "middle", 0, t.Label)
	}
	p.add(`<path fill="none" stroke="#000" d="M%.1f %.1fV%.1fH%.1f"/>`, p.area.Min.X, p.area.Min.Y, p.area.Max.Y, p.area.Max.X)
}

// end writes p.
func (c *Chart) end(p *plot, w io.Writer) error {
	p.add("</svg>")
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("draw %s: %w", c.Title, err)
	}
	return nil
}
