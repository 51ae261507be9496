package task

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func valid() Spec {
	return Spec{
		ID: ID{Job: "render", Task: "12", Attempt: 1}, Command: []string{"/bin/true"}, Dir: "/",
		Resources: Resources{Cores: trimtab.Units(1), Memory: trimtab.Units(1 << 30)},
	}
}

func TestEveryMistakeInASpecIsFound(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Spec){
		"job ..":                  func(s *Spec) { s.Job = ".." },
		"job with a slash":        func(s *Spec) { s.Job = "a/b" },
		"task empty":              func(s *Spec) { s.Task = "" },
		"task with a line":        func(s *Spec) { s.Task = "a\nb" },
		"task with @":             func(s *Spec) { s.Task = "a@b" },
		"task too long":           func(s *Spec) { s.Task = strings.Repeat("a", 64) },
		"attempt 0":               func(s *Spec) { s.Attempt = 0 },
		"class":                   func(s *Spec) { s.Class = "first" },
		"no command":              func(s *Spec) { s.Command = nil },
		"empty program":           func(s *Spec) { s.Command = []string{""} },
		"relative program":        func(s *Spec) { s.Command = []string{"bin/x"} },
		"program ..":              func(s *Spec) { s.Command = []string{".."} },
		"name without PATH":       func(s *Spec) { s.Command = []string{"true"} },
		"NUL in command":          func(s *Spec) { s.Command = []string{"/bin/true", "a\x00b"} },
		"command too long":        func(s *Spec) { s.Command = append(s.Command, strings.Repeat("a", maxText)) },
		"name with =":             func(s *Spec) { s.Env = map[string]string{"A=B": ""} },
		"name empty":              func(s *Spec) { s.Env = map[string]string{"": ""} },
		"NUL in environment":      func(s *Spec) { s.Env = map[string]string{"A": "\x00"} },
		"no directory":            func(s *Spec) { s.Dir = "" },
		"relative directory":      func(s *Spec) { s.Dir = "x" },
		"directory with ..":       func(s *Spec) { s.Dir = "/a/../b" },
		"relative progress":       func(s *Spec) { s.Progress = "p" },
		"group without user":      func(s *Spec) { s.Group = "users" },
		"no cores":                func(s *Spec) { s.Cores = trimtab.Amount{} },
		"negative cores":          func(s *Spec) { s.Cores = trimtab.Units(-1) },
		"cores not a number":      func(s *Spec) { s.Cores = trimtab.Units(math.NaN()) },
		"endless cores":           func(s *Spec) { s.Cores = trimtab.Units(math.Inf(1)) },
		"no memory":               func(s *Spec) { s.Memory = trimtab.Amount{} },
		"memory below the shim's": func(s *Spec) { s.Memory = trimtab.Units(MinMemory - 1) },
		"negative output":         func(s *Spec) { s.Limits.Output = -1 },
		"output of a disk":        func(s *Spec) { s.Limits.Output = 1 << 40 },
		"negative wall time":      func(s *Spec) { s.Limits.Wall = -1 },
		"negative grace":          func(s *Spec) { s.Limits.Grace = -1 },
		"grace of an hour":        func(s *Spec) { s.Limits.Grace = time.Hour },
		"negative processes":      func(s *Spec) { s.Limits.Processes = -1 },
	} {
		s := valid()
		spoil(&s)
		if err := s.Validate(); !isA(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAGroupSaysWhichTaskItIs(t *testing.T) {
	id := ID{Job: "a.b-c", Task: "x_1", Attempt: 12}
	if got, err := parseLeaf(leafOf(id)); err != nil || got != id {
		t.Errorf("%v, %v", got, err)
	}
	for _, leaf := range []string{"", "a", "a@b", "a@b@0", "a@b@01", "a@b@x", "a@b@1@2", "@b@1", "..@b@1"} {
		if id, err := parseLeaf(leaf); !isA(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v, %v", leaf, id, err)
		}
	}
}

// A tree of plain files stands for version 2 with its controllers.
func TestLimitsAreSetOnVersion2(t *testing.T) {
	root := t.TempDir()
	tr, err := openTree(root, "trimtab")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	s := valid().withDefaults()
	s.Cores = trimtab.Units(1.5)
	group := tr.path(s.Class, leafOf(s.ID))
	if err := tr.make(group); err != nil || tr.version != 2 {
		t.Fatal(err, tr.version)
	}
	if err := tr.limit(group, s); !isA(err, trimtab.ErrUnsupported) {
		t.Errorf("without controllers: %v", err)
	}
	want := map[string]string{"cpu.max": "150000 100000", "memory.max": "1073741824", "memory.oom.group": "1", "pids.max": "1024"}
	for file := range want {
		if err := os.WriteFile(filepath.Join(root, group, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.limit(group, s); err != nil {
		t.Fatal(err)
	}
	for file, text := range want {
		if got, err := tr.main.Read(filepath.Join(group, file)); err != nil || strings.TrimSpace(got) != text {
			t.Errorf("%s: %q, %v, want %q", file, got, err, text)
		}
	}
	if err := os.WriteFile(filepath.Join(root, group, "memory.events"), []byte("low 0\nhigh 3\nmax 4\noom 2\noom_kill 2\noom_group_kill 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := tr.oomKills(group); n != 2 {
		t.Errorf("%d killed for memory", n)
	}
}
