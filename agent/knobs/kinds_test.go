package knobs

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/config"
)

var update = flag.Bool("update", false, "rewrite the table of kinds in CONTRIBUTING.md")

func TestEachKindIsWholeAndKnowsItsOwnKnobsAlone(t *testing.T) {
	all := kinds.All()
	names, paths := map[string]bool{}, map[string]string{"haproxy": "b/w", "gate": "unix:/w", "envoy": "circuit_breakers.w.default.max_requests"}
	roots := map[string]string{"envoy": "unix:/w"}
	for i, k := range all {
		if k.Name == "" || names[k.Name] || len(k.Resources) == 0 || k.Probe == nil || k.Find == nil || k.Open == nil || k.Reopen == nil {
			t.Errorf("kind %q: %+v", k.Name, k)
		}
		names[k.Name] = true
		if strings.HasPrefix(k.Name, "kubernetes") {
			continue // its knobs are opened where there is a cluster: actuator/kubernetes
		}
		for _, resource := range k.Resources {
			knob, err := k.Open(actuator.Location{Root: cmp.Or(roots[k.Name], t.TempDir()), Path: cmp.Or(paths[k.Name], "w")}, resource)
			if err != nil || knob.Resource() != resource {
				t.Fatalf("%s: %v, %v, want a knob of %s", k.Name, knob, err, resource)
			}
			for j, other := range all {
				again, err := other.Reopen(knob.Undo())
				if i == j && (err != nil || again.String() != knob.String() || again.Resource() != resource) {
					t.Errorf("%s reopened %v, %v, want %s", other.Name, again, err, knob)
				}
				if i != j && (again != nil || !errors.Is(err, trimtab.ErrUnsupported)) {
					t.Errorf("%s reopened a knob of %s: %v, %v", other.Name, k.Name, again, err)
				}
				if again != nil {
					err = again.Close()
				}
				if i == j && err != nil {
					t.Error(err)
				}
			}
			if again, err := kinds.Reopen(knob.Undo()); err != nil || again.Resource() != resource || again.Close() != nil {
				t.Errorf("%s: %v, %v", k.Name, again, err)
			}
			if err := knob.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	var cfg config.Config
	for _, c := range []config.Concurrency{{HAProxy: &config.HAProxy{}}, {Envoy: &config.Envoy{}}, {Gate: "unix:/w"}} {
		for _, a := range (&config.Knob{Concurrency: &c, Rate: &config.Rate{}}).Admissions() {
			if kind, err := actuator.KindOf(all, a.Kind); err != nil || !slices.Contains(kind.Resources, a.Resource) {
				t.Errorf("the file may name a knob of %s of kind %q, and there is none", a.Resource, a.Kind)
			}
		}
	}
	for _, k := range []config.Knob{{Cgroup: "a"}, {Process: &config.Process{Dir: "/a"}}} {
		if name, _, _ := cfg.Location(&k); !names[name] {
			t.Errorf("the file may name a knob of kind %q, and there is none", name)
		}
	}
	if k, err := kinds.Reopen([]byte("{}")); k != nil || !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("of nobody: %v, %v", k, err)
	}
}

// fileKnob is a knob as short as can be: a file that holds a number.
type fileKnob struct{ path, resource string }

func (k fileKnob) String() string                     { return "file " + k.path }
func (k fileKnob) Resource() string                   { return k.resource }
func (k fileKnob) Probe(ctx context.Context) error    { _, err := k.Read(ctx); return err }
func (k fileKnob) MayWrite(ctx context.Context) error { return k.Probe(ctx) }
func (k fileKnob) Undo() []byte                       { return []byte("file " + k.resource + " " + k.path) }
func (k fileKnob) Close() error                       { return nil }

func (k fileKnob) Nearest(a trimtab.Amount) trimtab.Amount { return a }

func (k fileKnob) Read(context.Context) (trimtab.Amount, error) {
	b, err := os.ReadFile(k.path)
	if err != nil {
		return trimtab.Amount{}, err
	}
	var v float64
	_, err = fmt.Sscan(string(b), &v)
	return trimtab.Units(v), err
}

func (k fileKnob) Write(_ context.Context, a trimtab.Amount) error {
	return os.WriteFile(k.path, fmt.Append(nil, a.Value), 0o644)
}

// fileKnobs is the value by which the program knows them. They stand in for a kind
// that the file has a key for.
func fileKnobs() actuator.Kind {
	return actuator.Kind{
		Name: "process", Resources: []string{trimtab.Workers},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			return actuator.Location{Root: filepath.Dir(at.Path), Path: filepath.Base(at.Path)}, nil
		},
		Find: func(_ context.Context, at actuator.Location) (all []actuator.Instance, err error) {
			paths, err := filepath.Glob(filepath.Join(at.Root, at.Path))
			before, _, _ := strings.Cut(at.Path, "*")
			for i, p := range paths {
				all = append(all, actuator.Instance{Name: strings.TrimPrefix(filepath.Base(p), before), ID: uint64(i + 1)})
			}
			return all, err
		},
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			return fileKnob{filepath.Join(at.Root, at.Path), resource}, nil
		},
		Reopen: func(undo []byte) (actuator.Knob, error) {
			var k fileKnob
			if n, err := fmt.Sscanf(string(undo), "file %s %s", &k.resource, &k.path); n != 2 || err != nil {
				return nil, fmt.Errorf("reopen file: %w", trimtab.ErrUnsupported)
			}
			return k, nil
		},
		Measure: func(actuator.Location, string) (float64, error) { return 10, nil },
	}
}

// What CONTRIBUTING.md says of adding a kind: nothing but its value is needed for
// knobs, instances, capacity and restore.
func TestTheProgramKnowsAKindByItsValueAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"w-a", "w-b", "one"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("3"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {workers: 12}
workloads:
  - {name: many, mode: act, slo: {latency: 200ms, fraction: 0.95}, knob: {process: {dir: %q}, workers: {min: 2, max: 4}}}
  - {name: one, mode: act, slo: {latency: 200ms, fraction: 0.95}, knob: {process: {dir: %q}, workers: {min: 1, max: 5}}}
`, filepath.Join(dir, "w-*"), filepath.Join(dir, "one")))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []actuator.Kind{fileKnobs()}
	all, err := Of(kinds, cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	c := actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: actuator.AnyOf(kinds), Measure: Measure(kinds, cfg, all)}
	if c.Targets, c.Finders, err = OpenAll(kinds, all); err != nil {
		t.Fatal(err)
	}
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	plan := &trimtab.Plan{Pool: cfg.Pool.Name, Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 12, Lease: 30}
	h := a.Holding()
	if h.Capacity[trimtab.Workers] != 10 {
		t.Errorf("measured %v", h.Capacity)
	}
	var got []string
	for _, k := range h.Targets {
		got = append(got, fmt.Sprintf("%s/%s %v %v-%v", k.Workload, k.Instance, k.Now, k.Min, k.Max))
		plan.Actions = append(plan.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(2), Mode: trimtab.Act})
	}
	if want := []string{"many/a 3 2-4", "many/b 3 2-4", "one/ 3 1-5"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for _, r := range a.Handle(t.Context(), plan).Results {
		if r.Status != trimtab.Written {
			t.Errorf("%+v", r)
		}
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w-a", "w-b", "one"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "3" {
			t.Errorf("%s has %s, %v: not restored", name, b, err)
		}
	}
}

func TestAKindThatIsNotThereIsAnErrorBeforeAnythingIsOpened(t *testing.T) {
	cfg := patterned(t, t.TempDir(), "{}")
	if _, err := Of([]actuator.Kind{fileKnobs()}, cfg, "h"); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), `kind of knob "cgroup"`) {
		t.Errorf("error %v", err)
	}
}

func TestTheTableOfKindsIsPrinted(t *testing.T) {
	const path, begin, end = "../../CONTRIBUTING.md", "<!-- table:kinds -->\n", "<!-- end:kinds -->"
	var table strings.Builder
	table.WriteString("\n| kind | turns | what a host has of it |\n|---|---|---|\n")
	for _, k := range kinds.All() {
		measured := "is measured"
		if k.Measure == nil {
			measured = "is what the pool says"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", k.Name, strings.Join(k.Resources, ", "), measured)
	}
	table.WriteString("\n")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of kinds", path)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has\n%s\nwant\n%s\nRewrite it with: go test ./agent/knobs -run Table -update", path, old, table.String())
	}
	if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (k fileKnob) Traits() actuator.Traits { return actuator.Traits{} }
