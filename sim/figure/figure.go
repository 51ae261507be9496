package figure

import (
	"fmt"
	"io"
	"math"
)

// Chart is one figure.
type Chart struct {
	// Title is above the figure; X and Y name the axes.
	Title, X, Y string
	// Low and High are the ends of the y axis; both 0: chosen by the values.
	Low, High float64
	// Names are written below the groups of [Chart.Bars].
	Names  []string
	Series []Series
}

// Series is one line, one set of points, or one colour of bars.
type Series struct {
	Name string
	// X may be nil for lines over 0, 1, 2 … and for bars.
	X, Y []float64
	// Labels are written beside points.
	Labels []string
}

// palette returns colour i of the palette of Okabe and Ito, which colour-blind people can
// distinguish.
func palette(i int) string {
	colors := []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5a5a5a"}
	return colors[i%len(colors)]
}

func (s *Series) at(i int) (x, y float64) {
	if s.X != nil {
		return s.X[i], s.Y[i]
	}
	return float64(i), s.Y[i]
}

// span is a range of values that grows with each value.
type span struct{ low, high float64 }

func nothing() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) include(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

// drawn returns the range, widened if it has no length.
func (s span) drawn() span {
	switch {
	case s.low > s.high:
		return span{0, 1}
	case s.low == s.high:
		return span{s.low - 1, s.high + 1}
	}
	return s
}

// ranges returns the ranges of the values; NaN and infinity are errors.
func (c *Chart) ranges() (x, y span, err error) {
	x, y = nothing(), nothing()
	for i := range c.Series {
		for k := range c.Series[i].Y {
			px, py := c.Series[i].at(k)
			if math.IsNaN(px+py) || math.IsInf(px+py, 0) {
				return x, y, fmt.Errorf("draw %s: %s has the value (%v, %v)", c.Title, c.Series[i].Name, px, py)
			}
			x.include(px)
			y.include(py)
		}
	}
	return x.drawn(), y.drawn(), nil
}

// Lines writes each series as a line.
func (c *Chart) Lines(w io.Writer) error {
	x, y, err := c.ranges()
	if err != nil {
		return err
	}
	p := c.begin(x, y, ticks(x.low, x.high))
	for i := range c.Series {
		var points []point
		for k := range c.Series[i].Y {
			points = append(points, p.place(c.Series[i].at(k)))
		}
		p.line(points, palette(i), 1.4)
	}
	return c.end(p, w)
}

// Points writes each series as points with labels.
func (c *Chart) Points(w io.Writer) error {
	x, y, err := c.ranges()
	if err != nil {
		return err
	}
	const room = 0.02 // space beside the outermost points, as a fraction of the axis
	wide, high := room*(x.high-x.low), room*(y.high-y.low)
	x, y = span{x.low - wide, x.high + wide}, span{y.low - high, y.high + high}
	p := c.begin(x, y, ticks(x.low, x.high))
	var at []point
	var names []string
	for i := range c.Series {
		for k := range c.Series[i].Y {
			dot := p.place(c.Series[i].at(k))
			p.circle(dot, palette(i))
			if c.Series[i].Labels != nil {
				at, names = append(at, dot), append(names, c.Series[i].Labels[k])
			}
		}
	}
	p.tags(at, names)
	return c.end(p, w)
}

// Bars writes groups of bars: one group for each name, one bar in each for
// every series.
func (c *Chart) Bars(w io.Writer) error {
	_, y, err := c.ranges()
	if err != nil {
		return err
	}
	y.include(0)
	var under []tick
	for i, name := range c.Names {
		under = append(under, tick{float64(i), name})
	}
	p := c.begin(span{-0.6, float64(max(len(c.Names), 1)) - 0.4}, y, under)
	n := float64(max(len(c.Series), 1))
	wide := 1 / (n + 1)
	for i := range c.Series {
		for k, v := range c.Series[i].Y {
			left := float64(k) + wide*(float64(i)-n/2)
			p.box(p.place(left, 0), p.place(left+wide, v), palette(i))
		}
	}
	return c.end(p, w)
}

// tick is a mark of an axis.
type tick struct {
	Value float64
	Label string
}

// ticks returns round numbers at about six steps.
func ticks(low, high float64) (out []tick) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/6)))
	for _, m := range []float64{5, 2} {
		if (high-low)/(m*step) >= 4 {
			step *= m
			break
		}
	}
	for i := math.Ceil(low / step); i*step <= high+step/1e6; i++ {
		out = append(out, tick{i * step, fmt.Sprintf("%.4g", math.Round(i*step*1e9)/1e9+0)})
	}
	return out
}
