package hostfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// groups makes directories in the place of a hierarchy.
func groups(t testing.TB, names ...string) (*hostfs.Root, string) {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(dir, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, dir
}

// found lists instances as name=path.
func found(t testing.TB, r *hostfs.Root, pattern string) (all []string) {
	t.Helper()
	list, err := r.Instances(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		all = append(all, i.Name+"="+i.Path)
	}
	return all
}

func TestAPatternMatchesTheDirectoriesWhoseNamesFit(t *testing.T) {
	r, dir := groups(t, "shop/checkout@b.service", "shop/checkout@a.service", "shop/checkout@.service", "shop/checkout.service",
		"shop/checkout@c.service.d", "shop/checkout@d/e.service", "pods/x/main", "pods/y/other", "lone")
	for _, name := range []string{"shop/checkout@file.service", "pods/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "lone"), filepath.Join(dir, "shop/checkout@link.service")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		"shop/checkout@*.service": {"a=shop/checkout@a.service", "b=shop/checkout@b.service"},
		"pods/*/main":             {"x=pods/x/main"},
		"l*":                      {"one=lone"},
		"nowhere/*":               nil,
		"lone/*":                  nil,
	} {
		if got := found(t, r, pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}

// Two names of one directory would be two instances with one knob.
func TestWhatIsReachedByALinkIsNoInstance(t *testing.T) {
	r, dir := groups(t, "pods/x/own/main", "pods/y", "pods/z/own")
	for link, to := range map[string]string{"pods/y/own": "../x/own", "pods/z/own/main": "../../x/own/main", "pods/link": "x"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"pods/*/own/main": {"x=pods/x/own/main"},
		"pods/*":          {"x=pods/x", "y=pods/y", "z=pods/z"},
	} {
		if got := found(t, r, pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}

// Ordinary file systems give the number of what is gone to the next that is made.
func TestADirectoryThatWasRemovedAndMadeAgainHasAnotherID(t *testing.T) {
	r, dir := groups(t, "a1")
	seen := map[uint64]bool{}
	for n := range 5 {
		all, err := r.Instances("a*")
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		if seen[all[0].ID] {
			t.Errorf("directory %d has the ID of an earlier one", n)
		}
		seen[all[0].ID] = true
		// Kernels since 6.13 may give files a time ahead of CLOCK_REALTIME_COARSE, for
		// longer than a tick where a tick is late: what counts is what a file gets.
		for then := born(t, filepath.Join(dir, "a1")); ; {
			probe := t.TempDir()
			if now := born(t, probe); now != then {
				break
			}
		}
		if err := errors.Join(os.Remove(filepath.Join(dir, "a1")), os.Mkdir(filepath.Join(dir, "a1"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
}

// born is the time that the file system wrote down for the making of a file.
func born(t *testing.T, name string) unix.StatxTimestamp {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &x); err != nil {
		t.Fatal(err)
	}
	return x.Btime
}

func TestWhatIsNoPatternIsAnError(t *testing.T) {
	r, _ := groups(t, "a")
	for _, pattern := range []string{"a", "", "*/*", "a/**", "a//*", "./*", "../*"} {
		if got, err := r.Instances(pattern); err == nil {
			t.Errorf("%q: %v, want an error", pattern, got)
		}
	}
}

func TestADirectoryThatIsMadeAgainHasAnotherID(t *testing.T) {
	r, dir := groups(t, "a1")
	id := func() uint64 {
		all, err := r.Instances("a*")
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0].ID
	}
	first := id()
	if again := id(); again != first {
		t.Errorf("the same directory has ID %d, then %d", first, again)
	}
	// The first one stays, under another name, so that its number is not free.
	if err := errors.Join(os.Rename(filepath.Join(dir, "a1"), filepath.Join(dir, "b1")), os.Mkdir(filepath.Join(dir, "a1"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if second := id(); second == first {
		t.Errorf("another directory of the same name has the same ID %d", first)
	}
}

func TestTooManyInstancesAreCountedAndNoneIsReturned(t *testing.T) {
	var names []string
	for i := range hostfs.MaxInstances + 5 {
		names = append(names, fmt.Sprintf("i%d", i))
	}
	r, dir := groups(t, names...)
	all, err := r.Instances("i*")
	if !errors.Is(err, trimtab.ErrRefused) || len(all) > 0 || !strings.Contains(err.Error(), "1005 directories match, at most 1000 may") {
		t.Errorf("%d instances, error %v", len(all), err)
	}
	for _, n := range names[:5] {
		if err := os.Remove(filepath.Join(dir, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(found(t, r, "i*")); got != hostfs.MaxInstances {
		t.Errorf("%d instances, want %d", got, hostfs.MaxInstances)
	}
}

func TestNamesThatCannotBeToldAreNoInstances(t *testing.T) {
	r, _ := groups(t, "i\xff", "i\n", "i"+strings.Repeat("x", 254), "i"+strings.Repeat("y", 253), "iü")
	if got := found(t, r, "i*"); len(got) != 2 || !strings.HasPrefix(got[0], "yyy") || got[1] != "ü=iü" {
		t.Errorf("%q", got)
	}
}

// The slow and obvious way: a regular expression over the whole path.
func TestInstancesAreThoseOfARegularExpression(t *testing.T) {
	part := rapid.StringOfN(rapid.SampledFrom([]rune("ab@.")), 0, 3, -1)
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		paths := rapid.SliceOfN(rapid.StringMatching(`[ab@]{1,4}(/[ab@]{1,3})?`), 1, 8).Draw(rt, "paths")
		for _, p := range paths {
			if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		before, after := part.Draw(rt, "before"), part.Draw(rt, "after")
		pattern := before + "*" + after
		if rapid.Bool().Draw(rt, "in a group") {
			pattern = "a/" + pattern
		}
		r, err := hostfs.OpenRoot(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer r.Close()
		re := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "([^/]+)") + "$")
		want := map[string]bool{}
		for _, p := range paths {
			for ; p != "."; p = filepath.Dir(p) {
				if m := re.FindStringSubmatch(p); m != nil {
					want[m[1]+"="+p] = true
				}
			}
		}
		got := found(t, r, pattern)
		for _, g := range got {
			if !want[g] {
				rt.Errorf("%s: %s is no instance", pattern, g)
			}
		}
		if len(got) != len(want) {
			rt.Errorf("%s: %v, want %v", pattern, got, want)
		}
	})
}
