package figure

import (
	"fmt"
	"io"

	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
)

// grid is a matrix as plotter.HeatMap wants it: a column for each of the outer values.
type grid [][]float64

// Dims, Z, X and Y are of plotter.GridXYZ.
func (g grid) Dims() (columns, rows int) { return len(g), len(g[0]) }

// Z is the value at a place.
func (g grid) Z(column, row int) float64 { return g[column][row] }

// X is the place of a column.
func (grid) X(column int) float64 { return float64(column) }

// Y is the place of a row.
func (grid) Y(row int) float64 { return float64(row) }

// Heat writes values as colours: columns side by side, dark is low. The y axis of
// Low and High is the scale of the colours; both 0: as the values need.
func (c *Chart) Heat(w io.Writer, columns [][]float64) error {
	p := c.begin()
	if len(columns) == 0 || len(columns[0]) == 0 {
		return c.end(p, w)
	}
	for _, column := range columns {
		if len(column) != len(columns[0]) {
			return fmt.Errorf("draw %s: columns of %d and %d values", c.Title, len(columns[0]), len(column))
		}
	}
	colours := moreland.ExtendedBlackBody()
	colours.SetMax(1)
	h := plotter.NewHeatMap(grid(columns), colours.Palette(32))
	if c.Low != c.High {
		h.Min, h.Max = c.Low, c.High
		h.Underflow, h.Overflow = h.Palette.Colors()[0], h.Palette.Colors()[31]
	}
	if h.Max <= h.Min {
		h.Max = h.Min + 1
	}
	p.Add(h)
	p.Legend.Add(fmt.Sprintf("dark %.3g, light %.3g", h.Min, h.Max))
	whole := *c
	whole.Low, whole.High, whole.Series = 0, 0, []Series{{Name: "dark 0.000, light 00.0"}}
	return whole.end(p, w)
}
