package view

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestADraftReadsAsTheServiceWhateverItIsCalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := Row{Name: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"on", "12", "a: b", "x\nmode: act", "#"})).Draw(t, "name")}
		if strings.ToValidUTF8(row.Name, "") != row.Name {
			return
		}
		if rapid.Bool().Draw(t, "measured") {
			row.Latency = map[string]trimtab.Seconds{"p95": trimtab.SecondsOf(30 * time.Millisecond), "p99": trimtab.SecondsOf(90 * time.Millisecond)}
		}
		lines, _ := Draft(&row, "", 0)
		var read struct{ Workloads []map[string]any }
		if err := yaml.Unmarshal([]byte("workloads:\n"+strings.Join(lines, "\n")), &read); err != nil {
			t.Fatalf("%v in\n%s", err, strings.Join(lines, "\n"))
		}
		if len(read.Workloads) != 1 || read.Workloads[0]["mode"] != "off" {
			t.Fatalf("%v of\n%s", read.Workloads, strings.Join(lines, "\n"))
		}
		if name, ok := read.Workloads[0]["name"].(string); !ok || name != row.Name {
			t.Fatalf("%q, want %q", read.Workloads[0]["name"], row.Name)
		}
	})
}

func TestADraftProposesWhatWasMeasuredAndAMargin(t *testing.T) {
	row := Row{Name: "shop", Latency: map[string]trimtab.Seconds{"p95": trimtab.SecondsOf(30 * time.Millisecond)}}
	lines, recommends := Draft(&row, "shop.service", 4)
	text := strings.Join(lines, "\n")
	if !recommends || !strings.Contains(text, "slo: {latency: 45ms, fraction: 0.95}") || !strings.Contains(text, "knob: {cgroup: shop.service, cpu: {max: 4}}") || !strings.Contains(text, "mode: recommend") {
		t.Error(text)
	}
}
