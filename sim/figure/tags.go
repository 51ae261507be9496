package figure

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// tags are the names of points, written beside them.
type tags struct {
	at    plotter.XYs
	names []string
}

// Plot writes every name where it covers nothing, with a line to its point when
// that is not beside it.
func (t *tags) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	points := make([]vg.Point, len(t.at))
	for i, at := range t.at {
		points[i] = vg.Point{X: trX(at.X), Y: trY(at.Y)}
	}
	style := text.Style{Color: color.Black, Handler: plot.DefaultTextHandler, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, 8)}
	line := draw.LineStyle{Color: color.Gray{160}, Width: 0.5}
	for i, r := range place(points, t.names, style, c.Rectangle) {
		from, to := points[i], vg.Point{X: r.Min.X, Y: r.Min.Y + r.Size().Y/2}
		if r.Min.X < from.X {
			to.X = r.Max.X
		}
		if away := to.Y - from.Y; away < -4 || away > 4 {
			c.StrokeLine2(line, from.X, from.Y, to.X, to.Y)
		}
		c.FillText(style, r.Min, t.names[i])
	}
}

// place returns where each name goes: beside its point, to the right unless
// that is outside, and as far up or down as it takes to cover no point and no
// other name.
func place(points []vg.Point, names []string, style text.Style, within vg.Rectangle) []vg.Rectangle {
	const near, beside, line = 3, 7, 9.5 // around a point, to the name, from line to line
	var taken []vg.Rectangle
	for _, p := range points {
		taken = append(taken, vg.Rectangle{Min: vg.Point{X: p.X - near, Y: p.Y - near}, Max: vg.Point{X: p.X + near, Y: p.Y + near}})
	}
	out := make([]vg.Rectangle, len(points))
	for i, p := range points {
		// A viewer may draw it in a font that is a quarter wider.
		wide := 1.25 * style.Width(names[i])
		x := p.X + beside
		if x+wide > within.Max.X {
			x = p.X - beside - wide
		}
		for k := range 4 * len(points) {
			away := vg.Length((k+1)/2) * line
			if k%2 == 1 {
				away = -away
			}
			y := p.Y - near + away
			out[i] = vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + wide, Y: y + line - 1}}
			if y >= within.Min.Y-near && y < within.Max.Y && !slices.ContainsFunc(taken, func(r vg.Rectangle) bool { return overlap(r, out[i]) }) {
				break
			}
		}
		taken = append(taken, out[i])
	}
	return out
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
