//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/speculation"
)

// jobSite is a site whose NATS server, which holds each role to its permissions, can be
// killed and started again.
type jobSite struct {
	*stages
	conf                    string
	nats                    *server.Server
	planner, agent, console *program
	group                   string
	// marks is where tasks, which run as nobody, tell what they do.
	marks string
}

func newJobSite(t *testing.T) *jobSite {
	t.Helper()
	root, _, _ := realGroups(t)
	s := &jobSite{stages: newStages(t), group: ownGroup("trimtab-jobs")}
	marks, err := os.MkdirTemp("", "trimtab-jobs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(marks) })
	if err := os.Chmod(marks, 0o777); err != nil {
		t.Fatal(err)
	}
	s.marks = marks
	at, url, leaf := filepath.Join(s.dir, "nats-127.0.0.1"), loopback.Address(t), loopback.Address(t)
	b, err := os.ReadFile(filepath.Join(at, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	s.conf = strings.NewReplacer("/etc/nats/", at+"/", "/var/lib/nats", t.TempDir(), "0.0.0.0:4222", url, "0.0.0.0:7422", leaf).Replace(string(b))
	for _, user := range []string{"planner", "console", "agent-h1"} {
		file := filepath.Join(s.dir, user, "nats.yaml")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`url: .*`).ReplaceAll(b, []byte("url: tls://"+url))
		b = regexp.MustCompile(`leaf: .*`).ReplaceAll(b, []byte("leaf: tls://"+leaf))
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.change = func(text string) string {
		before, _, _ := strings.Cut(text, "workloads:")
		text = strings.Replace(before, fmt.Sprintf("cgroup_root: %q", s.q.root), fmt.Sprintf("cgroup_root: %q, lock_dir: %q", root, filepath.Join(s.dir, "locks")), 1)
		return text + fmt.Sprintf(`
beside:
  manager: {lease: 10s, thresholds: {memory: 1}, weights: {memory: 1}, worst: 0}
  tasks: {user: nobody, cgroup: %s, programs: [/bin/sh], mode: UP, thresholds: {cpu: 100, memory: 100}, ratio: {cpu: 0.3, memory: 1}}
`, s.group)
	}
	t.Cleanup(func() {
		for _, part := range []string{"oversubscribed", "regular", "."} { // they stay, empty
			all, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", s.group, part))
			for _, group := range all {
				if err := os.Remove(group); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
		}
	})
	s.serve()
	s.planner, s.agent, s.console = s.start("planner", "planner"), s.start("agent", "agent-h1", "--host", "h1"), s.start("console", "console")
	return s
}

// serve starts the NATS server with what it stored before.
func (s *jobSite) serve() {
	s.Helper()
	s.nats = clustertest.Start(s.T, s.conf)
	if !s.nats.ReadyForConnections(20 * time.Second) {
		s.Fatal("nats-server is not ready")
	}
}

// submit writes a job of real processes: each takes a lock for as long as it lives, and
// tells when it begins, ends well, or finds that it runs twice.
func (s *jobSite) submit(name string, tasks int) {
	s.Helper()
	file := filepath.Join(s.dir, name+".yaml")
	script := fmt.Sprintf(`f=%s/$TRIMTAB_COPY; exec 9>>$f.lock; flock -n 9 || { echo twice >>$f; exit 0; }; echo begin >>$f; sleep 3; echo end >>$f; echo task $TRIMTAB_COPY is done`, s.marks)
	text, err := json.Marshal(script)
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "name: %s\nretries: 3\ntasks:\n  - {name: t, copies: %d, command: [/bin/sh, -c, %s], env: {PATH: \"/usr/bin:/bin\"}, cpu: 0.2, memory: 32MiB}\n", name, tasks, text), 0o644); err != nil {
		s.Fatal(err)
	}
	s.console.until("the job is taken", func() error {
		if code, out := s.console.command("job", "submit", file); code != exitDone && !strings.Contains(out, "of that name is") {
			return fmt.Errorf("%d %s", code, out)
		}
		return nil
	})
}

func (s *jobSite) state(name string) (j view.JobState, err error) {
	_, body, err := s.console.get("/api/v1/batch/" + name)
	if err == nil {
		err = json.Unmarshal([]byte(body), &j)
	}
	return j, err
}

// becomes waits until a job is as it should be.
func (s *jobSite) becomes(what, name string, is func(*view.JobState) bool) {
	s.Helper()
	s.console.until(what, func() error {
		j, err := s.state(name)
		if err == nil && !is(&j) {
			err = fmt.Errorf("%s: %d waiting, %d running, %d done, %d failed; %s; hosts %s\nplanner:\n%s\nagent:\n%s", j.State, j.Waiting, j.Running, j.Done, j.Failed, j.Problem, s.hosts(), s.planner.log(), s.agent.log())
		}
		return err
	})
}

func (s *jobSite) hosts() string {
	_, body, _ := s.console.get("/api/v1/batch")
	return body
}

// begun counts how often tasks began.
func (s *jobSite) begun() (n int) {
	all, err := filepath.Glob(filepath.Join(s.marks, "*"))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range all {
		b, _ := os.ReadFile(file)
		n += strings.Count(string(b), "begin")
	}
	return n
}

// told is what the tasks told of themselves: how often each began, and ended well.
func (s *jobSite) told(tasks int) (began, ended int) {
	s.Helper()
	for i := 1; i <= tasks; i++ {
		b, err := os.ReadFile(filepath.Join(s.marks, fmt.Sprint(i)))
		if err != nil {
			s.Errorf("task %d never ran: %v", i, err)
		}
		if strings.Contains(string(b), "twice") {
			s.Errorf("task %d ran twice at once:\n%s", i, b)
		}
		if !strings.Contains(string(b), "end") {
			s.Errorf("task %d is lost:\n%s", i, b)
		}
		began, ended = began+strings.Count(string(b), "begin"), ended+strings.Count(string(b), "end")
	}
	return began, ended
}

// Planner, agent and NATS are killed in turn while a job of real processes runs. The file
// of each task shows that it ran to its end, and never twice at once.
func TestNoTaskIsLostOrRunsTwiceAtOnceWhenAProcessIsKilled(t *testing.T) {
	t.Parallel()
	s := newJobSite(t)
	const tasks = 18
	s.submit("night", tasks)
	begun := func(n int) { // tasks, after that many had begun before
		s.Helper()
		s.becomes("tasks begin", "night", func(j *view.JobState) bool { return s.begun() >= n+2 })
	}
	begun(0)

	s.planner.kill(false)
	s.planner = s.start("planner", "planner")
	begun(s.begun())

	s.agent.kill(false)
	s.agent.launch(s.agent.line...)
	begun(s.begun())

	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	time.Sleep(3 * time.Second) // everybody notices
	s.serve()
	s.becomes("the job is done", "night", func(j *view.JobState) bool { return j.State == speculation.StateDone })

	s.planner.until("what the board shows of the manager", func() error {
		return s.planner.boardHasMetrics("speculate.json", "speculate.json / Machines", "speculate.json / Time to store")
	})
	began, ended := s.told(tasks)
	t.Logf("%d tasks began %d times and ended well %d times", tasks, began, ended)
	if j, err := s.state("night"); err != nil || j.Done != tasks || j.Failed != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	if code, out := s.console.command("job", "list"); code != exitDone || !strings.Contains(out, "night") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := s.console.command("job", "logs", "night/t-1"); code != exitDone || !strings.Contains(out, "task 1 is done") {
		t.Errorf("%d %s", code, out)
	}
}
