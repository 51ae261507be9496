package resctrl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/rdt"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// fixture is a host with two caches, and a workload with a group of trimtab's.
type fixture struct {
	t    *testing.T
	tree *rdttest.Tree
	*polltest.Polled
	now   time.Duration
	group string
	root  string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, root: t.TempDir(), tree: rdttest.New(rdttest.Spec{
		Ways: 11, Domains: []int{0, 1}, Monitors: []string{"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"},
	})}
	if err := os.MkdirAll(filepath.Join(f.root, "shop/web@a"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := hostfs.OpenRoot(f.root)
	if err != nil {
		t.Fatal(err)
	}
	id, err := root.Inode("shop/web@a")
	if err = errors.Join(err, root.Close()); err != nil {
		t.Fatal(err)
	}
	f.group = rdt.Group(rdt.Location(f.root, "shop/web@a"), id)
	s := from("", func(string) (rdt.Files, error) { return f.tree, nil })
	open := s.Open
	s.Open = func(c poll.Config) (poll.Reader, error) {
		r, err := open(c)
		if err == nil {
			r.(*reader).boot = func() time.Duration { return f.now }
		}
		return r, err
	}
	f.Polled = polltest.Open(t, s, poll.Config{Root: f.root, Targets: []poll.Target{{Workload: "web", Host: "h", Path: "shop/web@*"}}})
	return f
}

// limit makes the group, as the knob does.
func (f *fixture) limit() {
	f.t.Helper()
	if err := f.tree.Mkdir(f.group); err != nil {
		f.t.Fatal(err)
	}
}

// set sets all events of all caches of a group.
func (f *fixture) set(group string, bytes uint64) {
	for _, e := range events() {
		for _, d := range []int{0, 1} {
			f.tree.Monitor(group, d, e.file, strconv.FormatUint(bytes, 10))
		}
	}
}

// next reads 2 s later, and returns what was told, by workload and quantity.
func (f *fixture) next() map[string]string {
	f.t.Helper()
	f.now += 2 * time.Second
	out := map[string]string{}
	for name, v := range f.Next() {
		out[strings.Replace(name, "/h/", "", 1)] = fmt.Sprint(v)
	}
	return out
}

func (f *fixture) want(got map[string]string, want ...string) {
	f.t.Helper()
	for _, w := range want {
		name, value, _ := strings.Cut(w, "=")
		if got[name] != value {
			f.t.Errorf("%s: %q, want %q", name, got[name], value)
		}
	}
}

func TestOccupancyAndRatesAreSumsOverTheCaches(t *testing.T) {
	f := newFixture(t)
	f.limit()
	f.set("", 1000)
	f.set(f.group, 500)
	f.want(f.next(), "weba llc_occupancy=1000", "weba membw_total=first reading", ".host llc_occupancy=3000", ".host membw_local=first reading")
	f.set(f.group, 700)
	f.want(f.next(), "weba llc_occupancy=1400", "weba membw_total=200", "weba membw_local=200", ".host membw_total=200", ".host llc_occupancy=3400")
	f.want(f.next(), "weba membw_total=0", ".host membw_total=0")
}

func TestWhatIsNotThereIsMissingAndNeverZero(t *testing.T) {
	f := newFixture(t)
	f.limit()
	f.set(f.group, 100)
	f.next()
	for _, c := range []struct{ text, want string }{{"Unavailable", "unavailable"}, {"Error", "error"}, {"Unassigned", "unassigned"}, {"x", "unreadable"}} {
		f.tree.Monitor(f.group, 1, "mbm_total_bytes", c.text)
		f.want(f.next(), "weba membw_total="+c.want, ".host membw_total="+c.want)
		f.tree.Monitor(f.group, 1, "mbm_total_bytes", "200")
		f.want(f.next(), "weba membw_total=first reading")
	}
	f.tree.Monitor(f.group, 1, "mbm_total_bytes", "10")
	f.want(f.next(), "weba membw_total=counter reset", "weba membw_local=0")
}

func TestAWorkloadWithoutAGroupOfItsOwnHasNoValueAndOneThatGoesIsToldOnce(t *testing.T) {
	f := newFixture(t)
	if got := f.next(); len(got) != 3 {
		t.Errorf("%v", got)
	}
	f.limit()
	f.want(f.next(), "weba membw_total=first reading")
	if err := f.tree.Rmdir(f.group); err != nil {
		t.Fatal(err)
	}
	f.want(f.next(), "weba membw_total=absent", "weba llc_occupancy=absent")
	if got := f.next(); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestATreeThatGoesIsMissing(t *testing.T) {
	f := newFixture(t)
	f.next()
	f.tree.Unmount()
	f.want(f.next(), ".host membw_total=unreadable", ".host llc_occupancy=unreadable")
}

func TestAHostWithoutMonitorsSaysWhich(t *testing.T) {
	open := func(m ...string) (*poll.Poller, error) {
		return poll.Open(from("", func(string) (rdt.Files, error) { return rdttest.New(rdttest.Spec{Ways: 4, Monitors: m}), nil }), poll.Config{Host: "h", Bus: &polltest.Polled{}})
	}
	if _, err := open(); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	c, err := open("llc_occupancy")
	if err != nil || len(c.Unavailable()) != 2 {
		t.Fatalf("%v, %v", c, err)
	}
	if _, err := poll.Open(from(filepath.Join(t.TempDir(), "nowhere"), rdt.Open), poll.Config{Host: "h", Bus: &polltest.Polled{}}); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

func TestEverySampleValidates(t *testing.T) {
	counts := rapid.Custom(func(r *rapid.T) *reading {
		out := &reading{at: time.Duration(rapid.Int64Min(0).Draw(r, "at")), groups: map[string]*monitors{}}
		for _, group := range []string{"", "g"} {
			if rapid.Bool().Draw(r, "has") || group == "" {
				m := &monitors{counts: map[string]map[string]count{}}
				for _, e := range events() {
					m.counts[e.file] = map[string]count{"mon_L3_00": {bytes: rapid.Uint64().Draw(r, "bytes"), missing: rapid.SampledFrom([]string{"", "", "error"}).Draw(r, "missing")}}
				}
				out.groups[group] = m
			}
		}
		return out
	})
	rapid.Check(t, func(r *rapid.T) {
		for _, e := range events() {
			v := whole(e, counts.Draw(r, "before"), counts.Draw(r, "after"))
			s := trimtab.Sample{Workload: "w", Quantity: e.quantity, Time: time.Unix(1, 0), Value: v.v, Window: trimtab.SecondsOf(v.window)}
			if err := s.Validate(); err != nil {
				r.Fatal(err)
			}
		}
	})
}
