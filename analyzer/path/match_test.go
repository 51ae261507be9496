package path

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// one steps through a frame with one span of the resource and returns the
// sketches.
func one(t *testing.T, p *Path, attrs ...trimtab.Attr) []*trimtab.Sketch {
	t.Helper()
	var w codec.FrameWriter
	r, _ := w.AddResource(attrs)
	w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Adjusted: 1, Start: epoch, End: epoch + 5, Resource: r})
	p.Step(at(0), w.Frame(0))
	var out []*trimtab.Sketch
	for _, v := range p.Flush(at(time.Second)) {
		if err := v.Validate(); err != nil {
			t.Error(err)
		}
		out = append(out, v.(*trimtab.Sketch))
	}
	return out
}

func TestAResourceBelongsToTheFirstWorkloadThatFits(t *testing.T) {
	name := func(v string) trimtab.Attr { return trimtab.Attr{Key: "service.name", Value: v} }
	env := func(v string) trimtab.Attr { return trimtab.Attr{Key: "env", Value: v} }
	shop := Match{Name: "shop", Attributes: map[string][]string{"service.name": {"front", "back"}, "env": {"prod"}}}
	rest := Match{Name: "rest", Attributes: map[string][]string{"env": {"prod", "test"}}}
	for what, c := range map[string]struct {
		discover            bool
		attrs               []trimtab.Attr
		workload, component string
	}{
		"all attributes, any value":   {false, []trimtab.Attr{env("prod"), name("back")}, "shop", "back"},
		"one attribute differs":       {false, []trimtab.Attr{name("front"), env("test")}, "rest", "front"},
		"one attribute is missing":    {false, []trimtab.Attr{name("front")}, "", ""},
		"no service name":             {false, []trimtab.Attr{env("prod")}, "rest", "unknown"},
		"nothing fits":                {false, []trimtab.Attr{name("x")}, "", ""},
		"nothing fits, discovered":    {true, []trimtab.Attr{name("x")}, "x", "x"},
		"fits, so not discovered":     {true, []trimtab.Attr{name("x"), env("test")}, "rest", "x"},
		"bears another's name":        {true, []trimtab.Attr{name("shop")}, "", ""},
		"nothing to be discovered by": {true, []trimtab.Attr{{Key: "host", Value: "h"}}, "", ""},
		"an empty name":               {true, []trimtab.Attr{name("")}, "", ""},
		"no attributes":               {true, nil, "", ""},
		"the first of equal keys":     {true, []trimtab.Attr{name("x"), name("y")}, "x", "x"},
		"a long name is cut":          {true, []trimtab.Attr{name(strings.Repeat("x", 300))}, strings.Repeat("x", 253), strings.Repeat("x", 253)},
		"a name that is not UTF-8":    {true, []trimtab.Attr{name("a\xff\xfeb")}, "a?b", "a?b"},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPath(t, Config{Discover: c.discover, Workloads: []Match{shop, rest}})
			got := one(t, p, c.attrs...)
			if c.workload == "" {
				if len(got) != 0 || count(p, "trimtab_path_unmatched_spans_total") != 1 {
					t.Errorf("got %s, want one unmatched span", text(t, got))
				}
				return
			}
			if len(got) != 1 || got[0].Workload != c.workload || got[0].Components[c.component] == nil {
				t.Errorf("got %s, want workload %s, component %s", text(t, got), c.workload, c.component)
			}
		})
	}
}

func TestASketchNamesTheVersionsThatRun(t *testing.T) {
	p := newPath(t, Config{Workloads: []Match{{Name: "shop", Attributes: map[string][]string{"service.name": {"front"}}}}})
	running := func(versions ...string) []string {
		var names []string
		for _, v := range versions {
			got := one(t, p, trimtab.Attr{Key: "service.name", Value: "front"}, trimtab.Attr{Key: "service.version", Value: v})
			names = got[0].Versions
		}
		return names
	}
	if got := running("2.0", "1.9", "2.0", ""); !slices.Equal(got, []string{"front 1.9", "front 2.0"}) {
		t.Errorf("got %q", got)
	}
	for i := range 100 {
		if got := running(fmt.Sprint("build ", i)); len(got) > trimtab.MaxVersions || !slices.Contains(got, fmt.Sprint("front build ", i)) {
			t.Fatalf("got %q", got)
		}
	}
}

func TestAWorkloadHasAComponentPerService(t *testing.T) {
	c := Config{Workloads: []Match{{Name: "shop", Attributes: map[string][]string{"service.name": {"front", "back"}}}}}
	s := run(t, newPath(t, c), frame(t,
		sp{trace: 1, id: 1, service: "front", start: 0, end: 100, kind: trimtab.SpanServer},
		sp{trace: 1, id: 2, parent: 1, service: "front", start: 20, end: 80, kind: trimtab.SpanClient},
		sp{trace: 1, id: 3, parent: 2, service: "back", start: 30, end: 70, kind: trimtab.SpanServer}))["shop"]
	if s.Requests != 1 || len(s.Components) != 2 || s.Spans != 3 {
		t.Fatalf("got %s", text(t, s))
	}
	if f, b := meanMS(&s.Components["front"].Sojourn), meanMS(&s.Components["back"].Sojourn); f != 30 || b != 40 {
		t.Errorf("sojourn %v and %v ms, want 30 (of 40 and 20) and 40", f, b)
	}
}
