package task

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/proctest"
)

// away starts a process that leaves the first one's session, parent and files, and
// ignores signals.
const away = `setsid sh -c 'sh -c "trap : HUP; trap : TERM; echo \$\$ >FIFO; while :; do sleep 1000; done" </dev/null >/dev/null 2>&1 &' & `

// stays is a first process that does so too.
const stays = away + `trap "" TERM; echo $$ >FIFO; while :; do sleep 1000; done`

// victim starts an agent with a task that forks away, and returns when both processes run.
func (h *host) victim(lease time.Duration) (agent *exec.Cmd, id ID, processes []*os.File) {
	h.Helper()
	fifo, read := h.fifo()
	s := h.sh(strings.ReplaceAll(stays, "FIFO", fifo))
	text, err := json.Marshal(prey{Config: h.config, Specs: []Spec{s}, Lease: lease})
	if err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), "TEST_AGENT="+string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		h.Fatalf("%q, %v", line, err)
	}
	return cmd, s.ID, []*os.File{h.process(read()), h.process(read())}
}

// watchdogOf finds the watchdog of an agent by its own group. One that was started and
// has not begun its program yet has no arguments to find it by.
func (h *host) watchdogOf() *os.File {
	h.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if pids := proctest.With("task-watchdog\x00", h.config.Group+"\x00"); len(pids) > 0 {
			return h.process(strconv.Itoa(pids[0]))
		}
	}
	h.Fatal("there is no watchdog")
	return nil
}

func TestNothingIsLeftWhenTheAgentIsKilled(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		cmd, id, processes := h.victim(time.Minute)
		watchdog, began := h.watchdogOf(), time.Now()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, p := range processes {
			h.gone(p)
		}
		t.Logf("all processes ended %v after the agent", time.Since(began))
		h.gone(watchdog) // it ends when nothing is left
		h.empty()
		h.open()
		if i := h.infoOf(id); i.State != Ended || i.Outcome != Lost || i.Reason == "" {
			t.Errorf("%+v", i)
		}
	})
}

func TestTheNextAgentKillsWhatIsLeftWhenTheWatchdogDiesToo(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.config.Watchdog = nil
		cmd, id, processes := h.victim(time.Minute)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its locks are free
		h.open()
		for _, p := range processes {
			h.gone(p)
		}
		h.empty()
		if i := h.infoOf(id); i.State != Ended || i.Outcome != Lost {
			t.Errorf("%+v", i)
		}
	})
}

func TestAWatchdogThatIsKilledIsStartedAgain(t *testing.T) {
	h := newHost(t, 1)
	cmd, _, processes := h.victim(time.Minute)
	first := h.watchdogOf()
	h.kill(first)
	h.gone(first)
	next := h.watchdogOf()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		h.gone(p)
	}
	h.gone(next)
	h.empty()
}

// kill kills a process of this test's.
func (h *host) kill(process *os.File) {
	h.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", process.Fd()))
	if err != nil {
		h.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || pid < 2 || syscall.Kill(pid, syscall.SIGKILL) != nil {
				h.Fatalf("kill %q: %v", text, err)
			}
		}
	}
}

// An agent that is stopped renews nothing and kills nothing.
func TestTheWatchdogKillsATaskWhoseLeaseEndedWhileTheAgentIsStopped(t *testing.T) {
	h := newHost(t, 1)
	// So long that its processes have told of themselves before the agent itself kills them.
	cmd, _, processes := h.victim(2 * time.Second)
	watchdog := h.watchdogOf()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		h.gone(p)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.gone(watchdog)
	h.empty()
}

func TestAJournalThatMakesNoSenseStopsNobody(t *testing.T) {
	h := newHost(t, 1)
	id := ID{Job: "job", Task: "9", Attempt: 1}
	running, err := json.Marshal(record{Info: Info{ID: id, Class: Oversubscribed, State: Running}, Boot: "another boot"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := hostfs.OpenJournal(h.config.Dir, journalSize)
	if err != nil {
		t.Fatal(err)
	}
	err = j.Append(
		hostfs.Entry{Key: "task/" + leafOf(id), Value: running},
		hostfs.Entry{Key: "task/job@8@1", Value: running}, // of another
		hostfs.Entry{Key: "task/../../../etc", Value: []byte(`{"state":"running","class":"regular"}`)},
		hostfs.Entry{Key: "task/job@1@1", Value: []byte(`{"state`)},
		hostfs.Entry{Key: "task/job@2@1", Value: []byte(`{"job":"job","task":"2","attempt":1,"state":"running","class":"../.."}`)})
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	// A group that is no task's, with a process in it.
	tr, err := openTree(h.config.Root, h.config.Group)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	if err := tr.make(tr.path(Regular, "somebody's")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := tr.main.Write(tr.path(Regular, "somebody's")+"/cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
		t.Error(err)
	}
	r := h.open()
	if i := h.infoOf(id); i.Outcome != Lost || i.Reason != "the host was restarted" {
		t.Errorf("%+v", i)
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	h.empty()
}
