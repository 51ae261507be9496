package zipkin

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// old reads spans of version 1, and says of each its service, kind, times in µs, peer and flags.
func old(t *testing.T, doc string) (out []string) {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	p := collector.NewPacker(1)
	for e := range v.Elements() {
		if err := ScanElement(e, &collector.ResourceCache{}, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range spantest.Unpack(p.Frames()) {
		out = append(out, fmt.Sprintf("%s %d %d-%d %q %d", s.Attrs["service.name"], s.Kind, s.Start/1000, s.End/1000, s.Callee, s.Flags))
	}
	return out
}

func TestBothSidesOfASpanOfVersion1AreSpans(t *testing.T) {
	at := func(value, service string, time int) string {
		return fmt.Sprintf(`{"timestamp":%d,"value":%q,"endpoint":{"serviceName":%q}}`, time, value, service)
	}
	for name, c := range map[string]struct {
		spans string
		want  []string
	}{
		"both sides, the times of the client": {`[{"traceId":"1","id":"2","timestamp":10,"duration":50,"annotations":[` + at("cs", "web", 10) + "," + at("sr", "shop", 20) + "," + at("ss", "shop", 50) + "," + at("cr", "web", 60) + `],"binaryAnnotations":[]}]`,
			[]string{"web 3 10-60 \"\" 0", "shop 2 20-50 \"\" 0"}},
		"both sides, no times but in annotations": {`[{"traceId":"1","id":"2","annotations":[` + at("cs", "web", 10) + "," + at("sr", "shop", 20) + "," + at("ss", "shop", 50) + "," + at("cr", "web", 60) + `]}]`,
			[]string{"web 3 10-60 \"\" 0", "shop 2 20-50 \"\" 0"}},
		"a call of a database": {`[{"traceId":"1","id":"2","timestamp":10,"duration":50,"annotations":[` + at("cs", "web", 10) + "," + at("cr", "web", 60) + `],"binaryAnnotations":[{"key":"sa","value":true,"endpoint":{"serviceName":"mysql","port":3306}},{"key":"error","value":"timeout","endpoint":{"serviceName":"web"}}]}]`,
			[]string{fmt.Sprintf("web 3 10-60 %q %d", "mysql", trimtab.FlagError)}},
		"a call that has not ended": {`[{"traceId":"1","id":"2","annotations":[` + at("cs", "web", 10) + `]}]`, []string{"web 3 10-0 \"\" 0"}},
		"a local span":              {`[{"traceId":"1","id":"2","timestamp":10,"duration":5,"binaryAnnotations":[{"key":"lc","value":"render","endpoint":{"serviceName":"web"}}]}]`, []string{"web 0 10-15 \"\" 0"}},
		"a message, and who took it": {`[{"traceId":"1","id":"2","timestamp":10,"duration":5,"annotations":[` + at("ms", "web", 10) + `]},{"traceId":"1","id":"3","parentId":"2","timestamp":20,"duration":5,"annotations":[` + at("mr", "mail", 20) + `]}]`,
			[]string{"web 4 10-15 \"\" 0", "mail 5 20-25 \"\" 0"}},
		"no ids": {`[{"traceId":"1","id":"x","binaryAnnotations":[]},{"traceId":"1","id":"2","parentId":"y","binaryAnnotations":[]}]`, nil},
	} {
		if d := cmp.Diff(c.want, old(t, c.spans)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func FuzzScanElement(f *testing.F) {
	f.Add([]byte(`{"traceId":"1","id":"2","annotations":[{"timestamp":5,"value":"cs","endpoint":{"serviceName":"web"}}],"binaryAnnotations":[{"key":"sa","value":true,"endpoint":{"serviceName":"db","ipv4":"10.0.0.1","port":1}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := jsonvalue.Parse(doc)
		if err != nil {
			return
		}
		p := collector.NewPacker(1)
		if ScanElement(v, &collector.ResourceCache{}, p) == nil && p.Spans()+int(p.Rejected()) == 0 {
			t.Fatal("neither a span nor a rejection")
		}
		for _, frame := range p.Frames() {
			if err := frame.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
