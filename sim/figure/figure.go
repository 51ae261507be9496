package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one figure.
type Chart struct {
	// Title is above; X and Y name the axes.
	Title, X, Y string
	// Low and High bound the y axis; both 0: as the values need.
	Low, High float64
	// Names are below the groups of [Chart.Bars].
	Names  []string
	Series []Series
}

// Series is one line, one set of points, or one colour of bars.
type Series struct {
	Name string
	// X is left out for lines over 0, 1, 2 … and for bars.
	X, Y []float64
	// Labels are written beside points.
	Labels []string
}

// The size of a figure.
const (
	width  = 9 * vg.Inch
	height = 4.5 * vg.Inch
	// edge is free on all sides.
	edge = 0.08 * vg.Inch
)

// margin is the width of the legend beside the plot: a viewer may draw its
// longest name in a font that is a quarter wider.
func (c *Chart) margin(p *plot.Plot) vg.Length {
	widest := vg.Length(0)
	for i := range c.Series {
		widest = max(widest, p.Legend.TextStyle.Width(c.Series[i].Name))
	}
	return 1.25*widest + p.Legend.ThumbnailWidth + 0.4*vg.Inch
}

// palette is that of Okabe and Ito.
func palette(i int) color.Color {
	colors := []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}, {90, 90, 90, 255}}
	return colors[i%len(colors)]
}

// begin makes the frame that all figures have.
func (c *Chart) begin() *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for style, size := range map[*font.Font]vg.Length{
		&p.Title.TextStyle.Font: 13, &p.X.Label.TextStyle.Font: 11, &p.Y.Label.TextStyle.Font: 11,
		&p.X.Tick.Label.Font: 9, &p.Y.Tick.Label.Font: 9, &p.Legend.TextStyle.Font: 9,
	} {
		*style = font.From(sans, size)
	}
	p.Title.Padding = 8
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.YPosition = true, true, 2, draw.PosCenter
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = color.Gray{225}
	p.Add(grid)
	return p
}

// end writes p.
func (c *Chart) end(p *plot.Plot, w io.Writer) error {
	if c.Low != c.High {
		p.Y.Min, p.Y.Max = c.Low, c.High
	}
	canvas := vgsvg.New(width, height)
	// The legend is beside the plot, where it covers nothing.
	whole, legend, margin := draw.New(canvas), p.Legend, c.margin(p)
	p.Legend = plot.NewLegend()
	p.Draw(draw.Crop(whole, edge, -margin, edge, -edge))
	legend.Draw(draw.Crop(whole, width-margin+8, 0, 0, -0.4*vg.Inch))
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("draw %s: %w", c.Title, err)
	}
	return nil
}

func (s *Series) points() plotter.XYs {
	out := make(plotter.XYs, len(s.Y))
	for i, y := range s.Y {
		out[i].X, out[i].Y = float64(i), y
		if s.X != nil {
			out[i].X = s.X[i]
		}
	}
	return out
}

// Lines writes each series as a line.
func (c *Chart) Lines(w io.Writer) error {
	p := c.begin()
	for i := range c.Series {
		l, err := plotter.NewLine(c.Series[i].points())
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Title, err)
		}
		l.Color, l.Width = palette(i), 1.4
		p.Add(l)
		p.Legend.Add(c.Series[i].Name, l)
	}
	return c.end(p, w)
}

// Points writes each series as points with labels.
func (c *Chart) Points(w io.Writer) error {
	p := c.begin()
	var all tags
	for i := range c.Series {
		s := &c.Series[i]
		dots, err := plotter.NewScatter(s.points())
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Title, err)
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: palette(i), Radius: 3.5, Shape: draw.CircleGlyph{}}
		p.Add(dots)
		p.Legend.Add(s.Name, dots)
		if s.Labels != nil {
			all.at, all.names = append(all.at, s.points()...), append(all.names, s.Labels...)
		}
	}
	p.Add(&all)
	p.X.Padding, p.Y.Padding = 6, 6
	return c.end(p, w)
}

// Bars writes groups of bars: one group for each name, one bar in each for
// every series.
func (c *Chart) Bars(w io.Writer) error {
	p := c.begin()
	n := max(len(c.Series), 1)
	wide := (width - c.margin(p) - 1.2*vg.Inch) / vg.Length(max(len(c.Names), 1)*(n+1))
	for i := range c.Series {
		b, err := plotter.NewBarChart(plotter.Values(c.Series[i].Y), wide)
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Title, err)
		}
		b.Color, b.LineStyle.Width = palette(i), 0
		b.Offset = wide * vg.Length(float64(i)-float64(n-1)/2)
		p.Add(b)
		p.Legend.Add(c.Series[i].Name, b)
	}
	p.NominalX(c.Names...)
	if len(c.Names) > 12 { // side by side they would run into each other
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, text.XRight, text.YTop
	}
	p.X.Min, p.X.Max = -0.6, float64(len(c.Names))-0.4
	return c.end(p, w)
}

// ticks are the round numbers of about six steps.
func ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/6)))
	for _, m := range []float64{5, 2} {
		if (high-low)/(m*step) >= 4 {
			step *= m
			break
		}
	}
	var out []plot.Tick
	for i := math.Ceil(low / step); i*step <= high+step/1e6; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(math.Round(i*step*1e9)/1e9, 'g', 4, 64)})
	}
	return out
}
