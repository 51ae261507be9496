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
