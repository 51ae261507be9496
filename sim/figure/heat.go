package figure

import (
	"fmt"
	"io"
	"math"
)

// shades is the number of colours of a heat map.
const shades = 32

// shade returns the colour for a share of the scale: dark is low. It interpolates between five
// colours of matplotlib's map inferno, whose lightness increases evenly.
func shade(share float64) string {
	colors := [][3]float64{{0, 0, 4}, {87, 16, 110}, {188, 55, 84}, {249, 142, 9}, {252, 255, 164}}
	at := min(1, max(0, share)) * float64(len(colors)-1)
	i := min(int(at), len(colors)-2)
	var of [3]int
	for k := range of {
		of[k] = int(math.Round(colors[i][k] + (at-float64(i))*(colors[i+1][k]-colors[i][k])))
	}
	return fmt.Sprintf("#%02x%02x%02x", of[0], of[1], of[2])
}

// Heat draws values as colours, in columns side by side. Low and High are the ends of the colour
// scale; both 0: chosen by the values. A NaN is left white.
func (c *Chart) Heat(w io.Writer, columns [][]float64) error {
	rows := 0
	if len(columns) > 0 {
		rows = len(columns[0])
	}
	of := nothing()
	for _, column := range columns {
		if len(column) != rows {
			return fmt.Errorf("draw %s: columns of %d and %d values", c.Title, rows, len(column))
		}
		for _, v := range column {
			if !math.IsNaN(v) {
				of.include(v)
			}
		}
	}
	if of = of.drawn(); c.Low != c.High {
		of = span{c.Low, c.High}
	}
	x, y := span{-0.5, float64(max(len(columns), 1)) - 0.5}, span{-0.5, float64(max(rows, 1)) - 0.5}
	frame := *c
	frame.Low, frame.High, frame.Series = 0, 0, []Series{{Name: fmt.Sprintf("dark %.3g, light %.3g", of.low, of.high)}}
	p := frame.begin(x, y, ticks(x.low, x.high))
	for i, column := range columns {
		p.column(float64(i), column, of)
	}
	return c.end(p, w)
}

// column draws adjacent values of one colour as one box.
func (p *plot) column(x float64, values []float64, of span) {
	level := func(v float64) int {
		if math.IsNaN(v) {
			return -1
		}
		return int(min(1, max(0, (v-of.low)/(of.high-of.low))) * (shades - 1))
	}
	for from := 0; from < len(values); {
		to, l := from+1, level(values[from])
		for to < len(values) && level(values[to]) == l {
			to++
		}
		if l >= 0 {
			p.box(p.place(x-0.5, float64(from)-0.5), p.place(x+0.5, float64(to)-0.5), shade(float64(l)/(shades-1)))
		}
		from = to
	}
}
