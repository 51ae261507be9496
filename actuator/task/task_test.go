package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestATaskRunsInAGroupOfItsOwnAndItsCodeIsReported(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		s := h.sh("cat /proc/self/cgroup; exit 3")
		info, text := h.run(s)
		if info.Outcome != Exited || info.Code != 3 || info.State != Ended {
			t.Errorf("%+v", info)
		}
		group := "/" + h.runner.tree.path(Oversubscribed, leafOf(s.ID))
		want := len(h.runner.tree.all)
		if n := strings.Count(text, group+"\n"); n != want {
			t.Errorf("in %d of %d hierarchies:\n%s", n, want, text)
		}
		h.empty()
	})
}

func TestTheOversubscribedGroupHasTheLeastWeightAndTheRegularOneTheUsual(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		if !h.limited {
			h.Skipf("%s has no cpu controller", h.config.Root)
		}
		// 1% of the other's, of 1024 and of 100.
		want := map[Class]string{Oversubscribed: "10", Regular: "1024"}
		if h.version == 2 {
			want = map[Class]string{Oversubscribed: "1", Regular: "100"}
		}
		for class, weight := range want {
			file := map[int]string{1: "cpu.shares", 2: "cpu.weight"}[h.version]
			if v, err := h.runner.tree.cpu.Read(filepath.Join(h.runner.tree.path(class, ""), file)); err != nil || strings.TrimSpace(v) != weight {
				t.Errorf("%s: %q, %v", class, v, err)
			}
		}
		s := h.sh("cat /proc/self/cgroup")
		s.Class = Regular
		if _, text := h.run(s); !strings.Contains(text, "/regular/"+leafOf(s.ID)) {
			t.Error(text)
		}
	})
}

func TestATaskGetsNoMoreThanItsCoresMemoryAndProcesses(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		if !h.limited {
			h.Skipf("%s has no controllers", h.config.Root)
		}
		s := h.spec("sleep", "1000")
		s.Cores, s.Memory, s.Limits.Processes = trimtab.Units(0.5), trimtab.Units(64<<20), 7
		id := h.start(s)
		group := r.tree.path(Oversubscribed, leafOf(id))
		want := map[string]string{"cpu.cfs_quota_us": "50000", "memory.limit_in_bytes": "67108864", "pids.max": "7"}
		if h.version == 2 {
			want = map[string]string{"cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "7"}
		}
		for file, text := range want {
			root := map[string]*hostfs.Root{"cpu": r.tree.cpu, "mem": r.tree.memory, "pid": r.tree.pids}[file[:3]]
			if got, err := root.Read(filepath.Join(group, file)); err != nil || strings.TrimSpace(got) != text {
				t.Errorf("%s: %q, %v", file, got, err)
			}
		}
	})
}

func TestATaskHasWhatIsDeclaredAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_AGENT", "1")
	each(t, func(t *testing.T, h *host) {
		h.open()
		s := h.spec("env")
		s.Env = map[string]string{"A": "1", "B": "two words\nand a line", "PATH": "/usr/bin:/bin"}
		if _, text := h.run(s); text != "A=1\nB=two words\nand a line\nPATH=/usr/bin:/bin\n" {
			t.Errorf("environment %q", text)
		}
		s = h.sh("pwd; readlink /proc/self/fd/0; grep NoNewPrivs /proc/self/status; cat /proc/self/oom_score_adj; for f in /proc/$$/fd/*; do echo ${f##*/}; done")
		s.Dir = h.TempDir()
		_, text := h.run(s)
		// 3 is the directory that the shell reads.
		if want := s.Dir + "\n/dev/null\nNoNewPrivs:\t1\n1000\n0\n1\n2\n3\n"; text != want {
			t.Errorf("%q, want %q", text, want)
		}
		s = h.spec("id")
		s.User = "65534"
		if _, text := h.run(s); !strings.HasPrefix(text, "uid=65534") || strings.Contains(text, "root") {
			t.Error(text)
		}
	})
}

func TestATaskThatPrintsWithoutEndFillsNoDisk(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		s := h.sh(`echo begin; head -c 3000000 /dev/zero | tr '\0' x; echo; echo; printf 'the \033[31mend\n'`)
		s.Limits.Output = 64 << 10
		info, text := h.run(s)
		if !strings.HasPrefix(text, "begin\nxxx") || !strings.HasSuffix(text, "end\n") {
			t.Errorf("%d bytes, %.20q…", len(text), text)
		}
		total := int64(3_000_000 + len("begin\n\n\nthe \033[31mend\n"))
		if info.Output != total || info.Dropped != total-int64(len(text)) || len(text) > 64<<10 {
			t.Errorf("%d bytes of output, %d dropped, %d kept", info.Output, info.Dropped, len(text))
		}
		if want := []string{"", "the [31mend"}; !slices.Equal(info.LastLines, want) {
			t.Errorf("last lines %q", info.LastLines)
		}
	})
}

func TestATaskThatExitsAtOnceIsReportedWithItsLastLines(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.config.Keep = 3
		h.open()
		var last ID
		for range 10 {
			s := h.sh("echo no such table >&2; exit 1")
			info := h.wait(h.start(s))
			if info.Outcome != Exited || info.Code != 1 || !slices.Equal(info.LastLines, []string{"no such table"}) {
				t.Fatalf("%+v", info)
			}
			last = s.ID
		}
		// The results of the last three are kept, and one of them is let go of.
		if err := h.runner.Forget(last); err != nil {
			t.Error(err)
		}
		all, err := h.runner.List(t.Context())
		left, bad := os.ReadDir(h.runner.outputDir(""))
		if err != nil || bad != nil || len(all) != 2 || len(left) != 2 {
			t.Errorf("%d known, %d with output: %v, %v", len(all), len(left), err, bad)
		}
		h.empty()
	})
}

func TestATaskThatExceedsItsMemoryIsOutOfMemory(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		if !h.limited {
			t.Skipf("%s has no memory controller", h.config.Root)
		}
		h.open()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s := h.spec(self, "hog")
		s.Memory = trimtab.Units(64 << 20)
		info := h.wait(h.start(s))
		if info.Outcome != OutOfMemory || info.OOMKills < 1 {
			t.Errorf("%+v", info)
		}
		// A shell that lives on and says so is one, too.
		s = h.sh(self + " hog; exit 4")
		s.Memory = trimtab.Units(64 << 20)
		if info := h.wait(h.start(s)); info.Outcome != OutOfMemory {
			t.Errorf("%+v", info)
		}
	})
}

func TestATaskIsTimedOutAfterItsWallTime(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		s := h.spec("sleep", "1000")
		s.Limits.Wall = 50 * time.Millisecond
		if info := h.wait(h.start(s)); info.Outcome != TimedOut || info.Signal != "SIGTERM" {
			t.Errorf("%+v", info)
		}
	})
}

func TestWhatCannotBeStartedIsRefusedWithTheReasonAndLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.config.MaxTasks = 1
		r := h.open()
		lost := h.spec("/no/such/program")
		nowhere := h.spec("true")
		nowhere.Dir = "/no/such/directory"
		nameless := h.spec("no-such-program")
		unknown := h.spec("true")
		unknown.User = "nobody-that-is-known"
		invalid := h.spec("true")
		invalid.Cores = trimtab.Units(0)
		for _, s := range []Spec{lost, nowhere, nameless, unknown, invalid} {
			if _, err := r.Start(t.Context(), s, time.Minute); !isA(err, trimtab.ErrInvalid) {
				t.Errorf("%v: %v", s.Command, err)
			}
		}
		if !h.limited {
			s := h.spec("true")
			s.Memory = trimtab.Units(1 << 30)
			if _, err := r.Start(t.Context(), s, time.Minute); !isA(err, trimtab.ErrUnsupported) {
				t.Errorf("a limit that cannot be set: %v", err)
			}
		}
		id := h.start(h.spec("sleep", "1000"))
		again := h.spec("sleep", "1000")
		for _, same := range []ID{id, again.ID} {
			again.ID = same
			if _, err := r.Start(t.Context(), again, time.Minute); !isA(err, trimtab.ErrRefused) {
				t.Errorf("%v: %v", same, err)
			}
		}
		all, err := r.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestProgressIsReadFromTheFileThatIsDeclared(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		s := h.sh(`echo '{"done": 0.25}' >"$FILE"; echo told`)
		s.Progress = filepath.Join(t.TempDir(), "progress")
		s.Env["FILE"] = s.Progress
		h.run(s)
		if i := h.infoOf(s.ID); i.Progress == nil || i.Progress.Done == nil || *i.Progress.Done != 0.25 {
			t.Errorf("%+v", i)
		}
		if err := os.WriteFile(s.Progress, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if i := h.infoOf(s.ID); i.Progress != nil || i.ProgressProblem == "" {
			t.Errorf("%+v", i)
		}
	})
}

func TestCloseKillsAllAndResultsAreThereAfterARestart(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		fifo, read := h.fifo()
		id := h.start(h.sh("echo working; echo $$ >" + fifo + "; sleep 1000"))
		process := h.process(read())
		done, _ := h.run(h.sh("echo done"))
		if _, err := Open(short(t), h.config); err == nil {
			t.Error("two runners have one group")
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.gone(process)
		h.empty()
		if _, err := r.Start(t.Context(), h.sh("true"), time.Minute); !isA(err, trimtab.ErrRefused) {
			t.Errorf("a start after Close: %v", err)
		}
		h.open()
		if i := h.infoOf(done.ID); !i.Succeeded() || h.printed(done.ID) != "done\n" || !i.Ended.Equal(done.Ended) {
			t.Errorf("%+v", i)
		}
		if i := h.infoOf(id); i.Outcome != Killed || h.printed(id) != "working\n" {
			t.Errorf("%+v", i)
		}
	})
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestManyTasksRunAtATimeAndAllAreCounted(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.config.MaxTasks, h.config.Keep = 20, 20
		r := h.open()
		ended := make(chan Info, 20)
		for range 20 {
			s := h.sh("exit 5")
			go func() {
				_, err := r.Start(t.Context(), s, time.Minute)
				info, bad := r.Wait(t.Context(), s.ID)
				if err != nil || bad != nil {
					info.Problem = fmt.Sprint(err, bad)
				}
				ended <- info
			}()
		}
		for range 20 {
			if i := <-ended; i.Code != 5 || i.Problem != "" {
				t.Errorf("%+v", i)
			}
		}
		h.empty()
	})
}

// BenchmarkATask is of a task that does nothing, from Start until its result is stored.
func BenchmarkATask(b *testing.B) {
	root, err := rootOf(1)
	if err != nil {
		b.Skip(err)
	}
	c := Config{Root: root, Group: "trimtab-test-bench", Dir: b.TempDir(), Shim: []string{"task-exec"}}
	r, err := Open(b.Context(), c)
	if err != nil {
		b.Skip(err)
	}
	n := 0
	for b.Loop() {
		n++
		s := valid()
		s.Attempt = n
		if _, err := r.Start(b.Context(), s, time.Minute); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Wait(b.Context(), s.ID); err != nil {
			b.Fatal(err)
		}
	}
	for _, h := range r.tree.all {
		if err := removeAll(h, c.Group); err != nil {
			b.Error(err)
		}
	}
	if err := r.Close(context.Background()); err != nil {
		b.Error(err)
	}
}
