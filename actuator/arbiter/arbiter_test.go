package arbiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func capacity(v float64) *float64 { return &v }

func TestRoomIsWhatOthersMayNotComeTo(t *testing.T) {
	host := func(now, may, cores float64) Claim { return Claim{Now: now, May: may, Capacity: capacity(cores)} }
	in := func(root string, c Claim) Claim { c.Root = root; return c }
	for name, c := range map[string]struct {
		own    Claim
		others []Claim
		want   float64
	}{
		"alone":                              {host(2, 2, 4), nil, math.Inf(1)},
		"others claim nothing":               {host(2, 2, 4), []Claim{host(0, 0, 4)}, math.Inf(1)},
		"nobody measured":                    {Claim{Now: 2, May: 2}, []Claim{{Now: 8, May: 8}}, math.Inf(1)},
		"another measured":                   {Claim{Now: 2, May: 2}, []Claim{host(3, 3, 4)}, 1},
		"baselines count":                    {host(2, 2, 8), []Claim{host(1, 5, 8)}, 3},
		"the largest reserve counts":         {host(2, 2, 8), []Claim{host(1, 1, 7)}, 6},
		"baselines alone are over the host":  {host(1, 6, 8), []Claim{host(3, 6, 8)}, 5},
		"limits in force are over the host":  {host(5, 6, 8), []Claim{host(6, 6, 8)}, 2},
		"groups that are apart":              {in("/a", host(2, 2, 2)), []Claim{in("/b", host(2, 2, 2))}, math.Inf(1)},
		"a group within a group":             {in("/a", host(1, 1, 4)), []Claim{in("/a/b", host(2, 2, 2))}, 2},
		"a group that has the name of a dir": {in("/a", host(1, 1, 4)), []Claim{in("/ab", host(2, 2, 2))}, math.Inf(1)},
		"what is around it bounds it too":    {in("/a/b", host(1, 1, 3)), []Claim{in("/a", host(2, 2, 4))}, 2},
	} {
		if got := Headroom(c.own, c.others); got != c.want {
			t.Errorf("%s: room %v, want %v", name, got, c.want)
		}
	}
}

// Claims that are raised only to what Headroom says, one after the other, fit the host as
// far as they did, whatever they are.
func TestWhoeverTakesAllTheRoomTheSumsAreNotRaisedOverTheHost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cores := float64(rapid.IntRange(1, 30).Draw(r, "cores"))
		all := make([]Claim, rapid.IntRange(2, 5).Draw(r, "claimants"))
		for i := range all {
			now := float64(rapid.IntRange(0, 10).Draw(r, "now"))
			all[i] = Claim{Now: now, May: now + float64(rapid.IntRange(0, 5).Draw(r, "more")), Capacity: &cores}
		}
		sums := func() (now, may float64) {
			for _, c := range all {
				now, may = now+c.Now, may+c.May
			}
			return now, may
		}
		for range rapid.IntRange(1, 20).Draw(r, "asks") {
			i := rapid.IntRange(0, len(all)-1).Draw(r, "who")
			others := append(append([]Claim{}, all[:i]...), all[i+1:]...)
			nowBefore, mayBefore := sums()
			want := float64(rapid.IntRange(0, 40).Draw(r, "want"))
			all[i].Now = max(all[i].Now, min(want, Headroom(all[i], others)))
			all[i].May = max(all[i].May, all[i].Now)
			now, may := sums()
			if now > max(cores, nowBefore) && !claimless(others) || may > max(cores, mayBefore) && !claimless(others) {
				r.Fatalf("from %v and %v to %v and %v of %v", nowBefore, mayBefore, now, may, cores)
			}
		}
	})
}

func claimless(others []Claim) bool {
	for _, o := range others {
		if o.May > 0 {
			return false
		}
	}
	return true
}

func newArbiter(dir, journal string) *Arbiter {
	return New(dir, Claimant{Journal: journal, Pool: journal, PID: 1, Boot: "b"}, slog.New(slog.DiscardHandler))
}

func settle(t *testing.T, a *Arbiter, now, may float64) {
	t.Helper()
	if err := a.Settle(t.Context(), map[string]Claim{"cpu": {Now: now, May: may, Capacity: capacity(8)}}); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskKeepsAClaimAsItWasAndGrantsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs to fill: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	a, late := newArbiter(dir, "a"), newArbiter(dir, "late")
	settle(t, a, 2, 2)
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	// One that has its file needs no room for more.
	own := map[string]Claim{"cpu": {Now: 2, May: 2, Capacity: capacity(8)}}
	if got, err := a.Ask(t.Context(), own, "cpu", 3); got != 3 || err != nil {
		t.Errorf("granted %v, %v", got, err)
	}
	if got, err := late.Ask(t.Context(), own, "cpu", 3); got != 0 || err == nil {
		t.Errorf("granted %v without a claim", got)
	}
	// Nor does what it left behind stop the others.
	if got, err := a.Ask(t.Context(), own, "cpu", 4); got != 4 || err != nil {
		t.Errorf("granted %v, %v", got, err)
	}
}

func TestWhatLiesAmongTheClaimsHarmsNobody(t *testing.T) {
	dir := t.TempDir()
	a := newArbiter(dir, "a")
	settle(t, a, 1, 1)
	for name, put := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"not finite": func(path string) error {
			return os.WriteFile(path, forge(`{"claims":{"cpu":{"now":1e400,"may":1}}}`), 0o600)
		},
		"negative": func(path string) error {
			return os.WriteFile(path, forge(`{"claims":{"cpu":{"now":-1,"may":1}}}`), 0o600)
		},
		"no object": func(path string) error { return os.WriteFile(path, forge(`[]`), 0o600) },
		"nothing":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"another name's": func(path string) error {
			return os.WriteFile(path, forge(`{"journal":"/elsewhere","boot":"b","claims":{"cpu":{"now":9,"may":9}}}`), 0o600)
		},
	} {
		path := filepath.Join(dir, "0123456789abcdef.claim")
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		settle(t, a, 1, 1)
		if got, err := a.Ask(t.Context(), map[string]Claim{"cpu": {Now: 1, May: 1, Capacity: capacity(8)}}, "cpu", 8); got != 8 || err != nil {
			t.Errorf("%s: granted %v, %v", name, got, err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	// Too many are not read at all, and nothing is raised.
	for i := range 4 * maxClaimants {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Ask(t.Context(), map[string]Claim{"cpu": {Now: 1, May: 1}}, "cpu", 9); got >= 9 || err == nil {
		t.Errorf("granted %v", got)
	}
}

// forge is a file with the right checksum.
func forge(body string) []byte {
	return append(fmt.Appendf(nil, "%08x\n", checksum([]byte(body))), body...)
}

func TestADeadClaimantThatLivedAgainMeanwhileKeepsItsClaim(t *testing.T) {
	dir := t.TempDir()
	a, b := newArbiter(dir, "a"), newArbiter(dir, "b")
	settle(t, b, 2, 4)
	if err := b.Close(false); err != nil {
		t.Fatal(err)
	}
	settle(t, a, 1, 1)
	if dead := a.Dead(); len(dead) != 1 || dead[0] != "b" || a.of("cpu")[0].Now != 4 {
		t.Fatalf("dead %q, claims %v", dead, a.of("cpu"))
	}
	b = newArbiter(dir, "b")
	settle(t, b, 3, 4)
	if err := a.Drop(t.Context(), []string{"b"}); err != nil || len(a.of("cpu")) != 1 {
		t.Errorf("%v: claims %v", err, a.of("cpu"))
	}
	if err := b.Close(false); err != nil { // it died again, with another claim
		t.Fatal(err)
	}
	if err := a.Drop(t.Context(), []string{"b"}); err != nil || len(a.of("cpu")) != 1 {
		t.Errorf("%v: claims %v", err, a.of("cpu"))
	}
	settle(t, a, 1, 1)
	if err := a.Drop(context.Background(), []string{"b"}); err != nil || len(a.of("cpu")) != 0 {
		t.Errorf("%v: claims %v", err, a.of("cpu"))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(forge(`{"journal":"/j","boot":"b","claims":{"cpu":{"now":1,"may":2,"capacity":3}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range [][]byte{b, forge(string(b))} {
			r, err := decode(text)
			if err != nil {
				continue
			}
			for _, c := range r.Claims {
				if c.validate() != nil {
					t.Errorf("claim %+v", c)
				}
			}
		}
	})
}

// Else one that is new, among others that ask all the time, would not count for long.
func TestWhoClaimsMoreThanIsWrittenWaitsForTheOthers(t *testing.T) {
	dir := t.TempDir()
	a, b := newArbiter(dir, "a"), newArbiter(dir, "b")
	settle(t, b, 1, 1)
	for _, now := range []float64{1, 2} {
		leave, err := b.enter(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		go leave()
		settle(t, a, now, 2)
	}
	leave, err := b.enter(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if err := a.Settle(t.Context(), map[string]Claim{"cpu": {Now: 1, May: 2, Capacity: capacity(8)}}); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("what is less than is written waited, or took the lock of another: %v", err)
	}
}

// BenchmarkSettle is what the arbiter costs a pool each second, with three others.
func BenchmarkSettle(b *testing.B) {
	dir := b.TempDir()
	all := make([]*Arbiter, 4)
	for i := range all {
		all[i] = newArbiter(dir, fmt.Sprint("journal ", i))
		if err := all[i].Settle(b.Context(), map[string]Claim{"cpu": {Now: 1, May: 2}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := all[0].Settle(b.Context(), map[string]Claim{"cpu": {Now: 1, May: 2}}); err != nil {
			b.Fatal(err)
		}
	}
}

// What speculative tasks have is claimed beside the rest: it takes no room from it, and together
// claimants promise no more of it than the one that asks may.
func TestIdleClaimsTakeNoRoomFromOthersAndAreBoundedTogether(t *testing.T) {
	dir := t.TempDir()
	a, b := newArbiter(dir, "a"), newArbiter(dir, "b")
	settle(t, a, 8, 8)
	none := map[string]Claim{"cpu": {Capacity: capacity(8)}}
	if got, err := b.AskIdle(t.Context(), none, "cpu", 6, 8); got != 6 || err != nil {
		t.Fatalf("granted %v, %v", got, err)
	}
	settle(t, a, 4, 8) // also what it lowers is its own
	if got, err := a.Ask(t.Context(), map[string]Claim{"cpu": {Now: 4, May: 8, Capacity: capacity(8)}}, "cpu", 8); got != 8 || err != nil {
		t.Errorf("granted %v, %v", got, err)
	}
	if got, err := a.AskIdle(t.Context(), map[string]Claim{"cpu": {Now: 8, May: 8, Capacity: capacity(8)}}, "cpu", 4, 8); math.Abs(got-2) > 2*slack || err != nil {
		t.Errorf("granted %v, %v: the other has 6 of 8", got, err)
	}
}

func TestTheClaimOfADeadClaimantWithAGroupEndsWithItsLastProcess(t *testing.T) {
	dir, group := t.TempDir(), filepath.Join(t.TempDir(), "tasks")
	if err := os.MkdirAll(filepath.Join(group, "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, b := newArbiter(dir, "a"), newArbiter(dir, "b")
	b.who.Group = group
	settle(t, b, 2, 2)
	if err := b.Close(false); err != nil {
		t.Fatal(err)
	}
	procs := filepath.Join(group, "one", "cgroup.procs")
	if err := os.WriteFile(procs, []byte("12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if settle(t, a, 1, 1); len(a.of("cpu")) != 1 || len(a.Dead()) != 0 {
		t.Errorf("with a process: claims %v, dead %q", a.of("cpu"), a.Dead())
	}
	if err := os.WriteFile(procs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if settle(t, a, 1, 1); len(a.of("cpu")) != 0 {
		t.Errorf("without a process: claims %v", a.of("cpu"))
	}
}
