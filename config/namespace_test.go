package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

// members has what a namespace is asked for, and what there is.
type members struct {
	all   []config.Member
	err   error
	asked []config.Namespace
}

func (m *members) list(_ config.Kubernetes, in config.Namespace) ([]config.Member, error) {
	m.asked = append(m.asked, in)
	return m.all, m.err
}

// loadNamespace reads a file with these workloads.
func loadNamespace(t *testing.T, workloads string, m *members) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, []byte("pool: {cpu: 4}\nprometheus: {url: http://127.0.0.1:9090}\nworkloads:\n"+workloads), 0o600); err != nil {
		t.Fatal(err)
	}
	if m == nil {
		return config.LoadWith(file, nil, nil)
	}
	return config.LoadWith(file, nil, m.list)
}

func names(c *config.Config) (all []string) {
	for i := range c.Workloads {
		all = append(all, c.Workloads[i].Name)
	}
	return all
}

const shopOnly = "  - {name: before, mode: off}\n  - match: {kubernetes: {namespace: shop, selector: {tier: web}}}\n  - {name: after, mode: off}\n"

func TestANamespaceIsEachOfItsWorkloadsWithAProposedSLOAndRecommendedOnly(t *testing.T) {
	proposed := config.SLO{Latency: 150 * time.Millisecond, Fraction: 0.95}
	m := &members{all: []config.Member{{Kind: "Deployment", Name: "cart", Container: "app", SLO: proposed}, {Kind: "StatefulSet", Name: "db"}}}
	c, err := loadNamespace(t, shopOnly, m)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c); !slices.Equal(got, []string{"before", "shop/cart", "shop/db", "after"}) {
		t.Fatalf("workloads %q", got)
	}
	cart, db := c.Workloads[1], c.Workloads[2]
	if cart.Mode != trimtab.Recommend || cart.SLO.Latency != proposed.Latency || !cart.SLO.Proposed || !cart.Drafted || cart.Knob.Kubernetes.Deployment != "cart" || cart.Knob.Kubernetes.Container != "app" || cart.Knob.CPU.Max != 4 {
		t.Errorf("cart %+v, knob %+v", cart, cart.Knob.Kubernetes)
	}
	if db.Mode != trimtab.Off || db.SLO.Target() != 0 || db.Match.Kubernetes.StatefulSet != "db" || db.Match.Spans["k8s.statefulset.name"][0] != "db" {
		t.Errorf("without an SLO yet: %+v", db)
	}
	if len(m.asked) != 1 || m.asked[0].Name != "shop" || m.asked[0].Selector["tier"] != "web" || len(c.Namespaces) != 1 {
		t.Errorf("asked %+v, namespaces %+v", m.asked, c.Namespaces)
	}
	if again, err := config.Parse("printed", c.Redacted()); err != nil || !slices.Equal(names(again), names(c)) {
		t.Errorf("what trimtab prints of it: %v", err)
	}
}

func TestAWorkloadOfANamespaceThatIsDeclaredByNameKeepsItsDeclaration(t *testing.T) {
	m := &members{all: []config.Member{{Kind: "Deployment", Name: "cart"}, {Kind: "Deployment", Name: "pay"}, {Kind: "StatefulSet", Name: "cart"}}}
	c, err := loadNamespace(t, "  - {name: mine, slo: {latency: 1s, fraction: 0.9}, match: {kubernetes: {namespace: shop, deployment: cart}}, knob: {cpu: {max: 2}}, mode: act}\n"+
		"  - {name: other, mode: off, match: {kubernetes: {namespace: else, deployment: pay}}}\n  - {name: shop/pay, mode: off}\n  - {match: {kubernetes: {namespace: shop}}, weight: 2}\n", m)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c); !slices.Equal(got, []string{"mine", "other", "shop/pay", "shop/cart"}) {
		t.Fatalf("workloads %q", got)
	}
	if w := c.Workloads[0]; w.Mode != trimtab.Act || w.SLO.Latency != time.Second || w.Drafted {
		t.Errorf("the declared one is %+v", w)
	}
	if w := c.Workloads[3]; w.Match.Kubernetes.StatefulSet != "cart" || w.Weight != 2 {
		t.Errorf("the drafted one is %+v", w)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Error(), "shop/Deployment/pay is left out: another workload is named shop/pay") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestWhatTheFileSaysOfANamespaceHoldsForEachOfItsWorkloads(t *testing.T) {
	m := &members{all: []config.Member{{Kind: "Deployment", Name: "cart"}, {Kind: "Deployment", Name: "pay"}}}
	c, err := loadNamespace(t, "  - slo: {latency: 1s, fraction: 0.9}\n    match: {kubernetes: {namespace: shop, container: app}}\n    load: 'sum(rate(requests{$match}[1m]))'\n    knob: {cpu: {min: 0.2, max: 1, cap: never}}\n", m)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"cart", "pay"} {
		w := c.Workloads[i]
		query, err := w.Match.Expand(w.Load)
		if w.SLO.Latency != time.Second || w.SLO.Proposed || w.Mode != trimtab.Recommend || w.Knob.CPU.Min != 0.2 || w.Knob.CPU.Cap != config.CapNever || w.Knob.Kubernetes.Container != "app" || err != nil || !strings.Contains(query, want+"-[a-z0-9]+") {
			t.Errorf("%s: %+v, load %s, %v", want, w, query, err)
		}
	}
	c, err = loadNamespace(t, "  - {match: {kubernetes: {namespace: shop}}, knob: {memory: {min: 64MiB, max: 1GiB}}}\n", m)
	if err != nil || len(c.Workloads) != 2 || c.Workloads[0].Mode != trimtab.Recommend || c.Workloads[0].SLO.Proposed {
		t.Errorf("memory alone needs no SLO: %+v, %v", c, err)
	}
}

func TestANamespaceThatCannotBeLookedUpIsAWarningAndItsKeysAreCheckedAllTheSame(t *testing.T) {
	for want, m := range map[string]*members{"were not looked up": nil, "cannot be listed: no route": {err: errors.New("no route")}, "": {}} {
		c, err := loadNamespace(t, shopOnly, m)
		if err != nil {
			t.Fatal(err)
		}
		if said := c.Warnings.Error(); !slices.Equal(names(c), []string{"before", "after"}) || !strings.Contains(said, want) || (want == "") != (len(c.Warnings) == 0) {
			t.Errorf("workloads %q, warnings %s, want %q", names(c), said, want)
		}
	}
	for workload, want := range map[string]string{
		"  - {match: {kubernetes: {namespace: shop}}, mode: act}\n":                                           "4:52: a whole namespace is recommended for, and never set",
		"  - {match: {kubernetes: {namespace: shop}}, slo: {latency: 1s}}\n":                                  "4:51: slo has no fraction",
		"  - {name: cart, match: {kubernetes: {namespace: shop}}, mode: off}\n":                               "kubernetes names no workload",
		"  - {match: {kubernetes: {namespace: shop, deploymnt: cart}}, mode: off}\n":                          `unknown key "deploymnt"`,
		"  - {name: a, match: {kubernetes: {namespace: shop, deployment: a, selector: {a: b}}}, mode: off}\n": "selector chooses among all workloads of a namespace",
	} {
		for _, m := range []*members{nil, {all: []config.Member{{Kind: "Deployment", Name: "cart"}}}} {
			if _, err := loadNamespace(t, workload, m); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q, got %v", workload, want, err)
			}
		}
	}
}

func TestDaemonSetsAndRolloutsAreNamedAndADaemonSetHasNoNumber(t *testing.T) {
	const entry = "  - {name: a, slo: {latency: 1s, fraction: 0.9}, load: 'sum(rate(requests{$match}[1m]))', match: {kubernetes: {namespace: shop, %s}}, knob: {cpu: {max: 2}%s}}\n"
	for name, want := range map[string]string{
		"daemonset: a": `namespace="shop",pod=~"a-[a-z0-9]{5}"`, "rollout: a": `namespace="shop",pod=~"a-[a-z0-9]+-[a-z0-9]+"`,
	} {
		c, err := loadNamespace(t, fmt.Sprintf(entry, name, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := c.Workloads[0]
		kind, of := w.Knob.Kubernetes.Workload()
		query, _ := w.Match.Expand(w.Load)
		if key, _, _ := strings.Cut(name, ":"); !strings.EqualFold(kind, key) || of != "a" || !strings.Contains(query, want) || w.Match.Spans["k8s."+key+".name"] == nil || !slices.Equal(c.Kinds(), []string{kind}) {
			t.Errorf("%s: %s %s, %s, %v", name, kind, of, query, w.Match.Spans)
		}
	}
	for _, bad := range [][]string{
		{"daemonset: a", ", replicas: {min: 1, max: 3}", "a DaemonSet has a pod on each node"},
		{"deployment: a, rollout: a", "", "kubernetes has both a deployment and a rollout"},
		{"rollout: A_b", "", "is no name of Kubernetes"},
	} {
		if _, err := loadNamespace(t, fmt.Sprintf(entry, bad[0], bad[1]), nil); err == nil || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
