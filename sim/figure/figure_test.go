package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// parse checks that b is XML, and returns its text.
func parse(t *testing.T, b []byte) string {
	t.Helper()
	var text strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok {
			text.Write(c)
		}
	}
}

func TestFiguresAreSVGThatNamesWhatItShows(t *testing.T) {
	c := Chart{Title: "welfare <over> time", X: "round", Y: "social", Names: []string{"db0", "db1"}, Series: []Series{
		{Name: "njc & co", Y: []float64{0.5, 0.75}, Labels: []string{"left", "right"}}, {Name: "fair", Y: []float64{0.25, 0.5}}}}
	for kind, draw := range map[string]func(io.Writer) error{"lines": c.Lines, "points": c.Points, "bars": c.Bars} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Fatal(kind, err)
		}
		text := parse(t, b.Bytes())
		for _, want := range []string{"welfare <over> time", "social", "njc & co", "fair"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", kind, want)
			}
		}
	}
}

func TestWhatIsNoNumberIsAnError(t *testing.T) {
	c := Chart{Title: "x", Series: []Series{{Name: "a", Y: []float64{1, math.NaN()}}}}
	if err := c.Lines(io.Discard); err == nil {
		t.Error("drawn")
	}
}

func TestNamesOfPointsCoverNeitherPointsNorEachOther(t *testing.T) {
	within := rectangle{Max: point{500, 300}}
	var points []point
	var names []string
	for i := range 20 {
		points = append(points, point{400 + float64(i%7)*12, 295 - float64(i%3)})
		names = append(names, strings.Repeat("n", 5+i))
	}
	placed := place(points, names, within)
	for i, r := range placed {
		if r.Max.X > within.Max.X || r.Min.Y < 0 || r.Max.Y > within.Max.Y+3 {
			t.Errorf("name %d at %v", i, r)
		}
		for j, other := range placed {
			if i != j && overlap(r, other) {
				t.Errorf("names %d and %d: %v and %v", i, j, r, other)
			}
			if p := points[j]; p.X > r.Min.X && p.X < r.Max.X && p.Y > r.Min.Y && p.Y < r.Max.Y {
				t.Errorf("name %d covers point %d", i, j)
			}
		}
	}
	if alone := place(points[:1], []string{"one"}, within)[0]; alone.Min.X-points[0].X > 10 || alone.Min.Y > points[0].Y || alone.Max.Y < points[0].Y {
		t.Errorf("a name alone is at %v, its point at %v", alone, points[0])
	}
}

func TestTheLegendHasRoomForItsLongestName(t *testing.T) {
	for _, name := range []string{"njc", "egalitarian: egalitarian and more"} {
		c := Chart{Series: []Series{{Name: name, Y: []float64{1, 2}}}}
		if room, need := c.margin(), textWidth(name, little); room < need+24 || room > need+40 {
			t.Errorf("%q: %v for %v", name, room, need)
		}
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, r := range [][2]float64{{0, 1}, {0.83, 0.95}, {0, 180}, {0.0003, 0.0011}, {-1, 1}} {
		of := ticks(r[0], r[1])
		if len(of) < 4 || len(of) > 12 {
			t.Errorf("%v: %d ticks", r, len(of))
		}
		for _, tick := range of {
			if tick.Value < r[0]-1e-9 || tick.Value > r[1]+1e-6*math.Abs(r[1]) || len(tick.Label) > 6 {
				t.Errorf("%v: %v %q", r, tick.Value, tick.Label)
			}
		}
	}
}

func TestAHeatMapHasAColourForEachValue(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := Chart{Title: "machines", High: 1}
	if err := c.Heat(&out, [][]float64{{0, 0.5, 2}, {1, 0.25, -1}}); err != nil || !strings.Contains(out.String(), "machines") {
		t.Errorf("error %v, %.200s", err, out.String())
	}
	if err := c.Heat(&out, [][]float64{{0, 1}, {1}}); err == nil {
		t.Error("columns of different lengths were drawn")
	}
	if err := c.Heat(&out, nil); err != nil {
		t.Errorf("nothing to draw: %v", err)
	}
}
