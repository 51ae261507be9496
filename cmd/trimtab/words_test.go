package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab"
)

// say runs one command line in this process.
func say(t testing.TB, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = Main(t.Context(), args, &b, &b)
	return code, b.String()
}

func TestAWordThatIsNearlyRightIsAnsweredWithTheRightOne(t *testing.T) {
	for line, want := range map[string]string{
		"statsu":                          `did you mean "status"?`,
		"exlain x":                        `did you mean "explain"?`,
		"check confg x":                   `did you mean "config"?`,
		"debug bundel":                    `did you mean "bundle"?`,
		"status --ulr x":                  `did you mean "--url"?`,
		"status --wach":                   `did you mean "--watch"?`,
		"run --web.listen-addrss x":       `did you mean "--web.listen-address"?`,
		"run --config.fiel x":             `did you mean "--config.file"?`,
		"status -o yml":                   `"yaml"`,
		"completion tcsh":                 `"bash","zsh","fish"`,
		"status --watch=0.001s":           "at least 100ms",
		"status --watch=often":            "--watch=5s",
		"status --log.level=debug --nope": "unknown flag --nope",
	} {
		code, out := say(t, strings.Fields(line)...)
		if code != exitError || !strings.Contains(out, want) || !strings.Contains(out, "trimtab: hint: ") {
			t.Errorf("trimtab %s: code %d, no %q:\n%s", line, code, want, out)
		}
	}
}

func TestACommandOfTheLaboratoryIsAnsweredWithItsProgram(t *testing.T) {
	for _, line := range []string{"sim services --seeds 2", "calc njc", "bench drf", "sim"} {
		if code, out := say(t, strings.Fields(line)...); code != exitError || !strings.Contains(out, "trimtab: hint: trimtab-lab has this command: trimtab-lab "+line+"\n") {
			t.Errorf("trimtab %s: code %d:\n%s", line, code, out)
		}
	}
}

func TestHelpAsAWordIsTheHelpOfTheFlag(t *testing.T) {
	for words, flag := range map[string]string{"help": "--help", "help status": "status --help", "help check config": "check config --help"} {
		wantCode, want := say(t, strings.Fields(flag)...)
		if code, out := say(t, strings.Fields(words)...); code != wantCode || out != want || want == "" {
			t.Errorf("trimtab %s: code %d:\n%s\nwant that of %s: code %d", words, code, out, flag, wantCode)
		}
	}
}

// leaves are the command lines that people can type.
func leaves(t *testing.T) []*kong.Node {
	t.Helper()
	k, err := kong.New(&grammar{}, kong.Name("trimtab"), kong.Vars{"version": "", "storage": ""})
	if err != nil {
		t.Fatal(err)
	}
	return k.Model.Leaves(true)
}

func TestEveryVisibleCommandHasHelpAndAnExampleThatStartsWithIt(t *testing.T) {
	for _, n := range leaves(t) {
		code, out := say(t, append(strings.Fields(n.Path()), "--help")...)
		_, example, _ := strings.Cut(out, "\nExample:\n")
		if code != exitDone || n.Help == "" || !strings.Contains(example, "trimtab "+n.Path()) {
			t.Errorf("trimtab %s --help: code %d, help %q, example %q", n.Path(), code, n.Help, example)
		}
		for _, v := range n.Values() {
			if v.Help == "" {
				t.Errorf("trimtab %s: %s has no help", n.Path(), v.Summary())
			}
		}
	}
}

func TestTheManualPageNamesEveryVisibleCommand(t *testing.T) {
	code, page := say(t, "man", "--date", "2026-01-31")
	if code != exitDone {
		t.Fatal(page)
	}
	page = strings.ReplaceAll(page, `\-`, "-")
	for _, n := range leaves(t) {
		if !strings.Contains(page, `.SS "trimtab `+n.Path()) {
			t.Errorf("no %s", n.Path())
		}
		for _, f := range n.Flags {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("no --%s of %s", f.Name, n.Path())
			}
		}
	}
}

func TestWideShowsEveryColumn(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	o := operate(t, q, trimtab.Recommend, nil)
	o.eventually("a plan and a difference", func() bool {
		code, _ := o.trimtab("plan")
		changes, _ := o.trimtab("diff")
		return code == exitDone && changes == exitChanges
	})
	for command, want := range map[string][]string{
		"status": {"DEMAND", "REPORTS", "KNOB", "hungry", "modest", "UTILITY", "STATE"},
		"plan":   {"WHY", "HOST", "DEMAND", "hungry"},
		"diff":   {"AWAY", "NEXT", "hungry"},
	} {
		_, wide := o.trimtab(command, "-o", "wide")
		head := func(s string) int {
			for line := range strings.Lines(s) {
				if strings.HasPrefix(line, "WORKLOAD") {
					return len(strings.Fields(line))
				}
			}
			return 0
		}
		_, text := o.trimtab(command)
		if head(wide) <= head(text) {
			t.Errorf("%s: wide has no more columns than text:\n%s\n%s", command, wide, text)
		}
		for _, w := range want {
			if !strings.Contains(wide, w) {
				t.Errorf("%s -o wide: no %s in\n%s", command, w, wide)
			}
		}
		if strings.Contains(wide, "\x1b") {
			t.Errorf("%s: colour on a pipe", command)
		}
	}
}

func TestWatchAsksAgainUntilItIsToldToStopAndOutlivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errOut bytes.Buffer
		var times []time.Duration
		start := time.Now()
		f := watchFlags{Watch: every(5 * time.Second)}
		err := f.repeat(ctx, terminal{&out, &errOut}, func(_ context.Context, t terminal) error {
			times = append(times, time.Since(start))
			fmt.Fprintln(t.out, "shown", len(times))
			switch len(times) {
			case 2:
				return fmt.Errorf("gone for now")
			case 3:
				return errChanges
			case 4:
				cancel()
			}
			return nil
		})
		if err != nil || fmt.Sprint(times) != "[0s 5s 10s 15s]" {
			t.Errorf("%v at %v", err, times)
		}
		if out.String() != "shown 1\nshown 2\nshown 3\n" || errOut.String() != "trimtab: error: gone for now\n" {
			t.Errorf("%q %q", out.String(), errOut.String())
		}
	})
}

func TestWatchTakesItsTimeOnlyBehindAnEqualsSign(t *testing.T) {
	for line, want := range map[string]time.Duration{"status": 0, "status --watch": 2 * time.Second, "status --watch=5s": 5 * time.Second, "status --watch -o json": 2 * time.Second} {
		var c grammar
		k, err := kong.New(&c, kong.Vars{"version": "", "storage": ""})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Parse(strings.Fields(line)); err != nil || time.Duration(c.Status.Watch) != want {
			t.Errorf("%s: %v, %v", line, time.Duration(c.Status.Watch), err)
		}
	}
}

func TestWatchedCommandsAskTheRunningTrimtabAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/status" && asked.Add(1) == 3 {
			cancel()
		}
		fmt.Fprint(w, `{"workloads":[]}`)
	}))
	defer s.Close()
	var out bytes.Buffer
	if code := Main(ctx, []string{"status", "--url", s.URL, "--watch=100ms"}, &out, &out); code != exitDone || strings.Count(out.String(), "no workload yet") < 2 {
		t.Errorf("code %d: %s", code, out.String())
	}
}

func TestNoMessageShowsTheUserOrPasswordOfAnAddress(t *testing.T) {
	for _, line := range []string{"status", "explain x", "plan", "diff", "pause", "apply 1-1 --wait 1ms", "debug bundle --output " + t.TempDir() + "/b.tar.gz"} {
		for _, address := range []string{"http://anna:s3cr3t-word@127.0.0.1:1", "http://anna:s3cr3t-word@127.0.0.1:x"} {
			_, out := say(t, append(strings.Fields(line), "--url", address)...)
			if strings.Contains(out, "s3cr3t") || strings.Contains(out, "anna") {
				t.Errorf("%s %s: %s", line, address, out)
			}
		}
	}
}

// BenchmarkHelp is the time from the start of a process to the end of its
// --help; the promise is 100 ms.
func BenchmarkHelp(b *testing.B) {
	var worst time.Duration
	for b.Loop() {
		start := time.Now()
		if out, err := exec.Command(os.Args[0], "status", "--help").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Example:")) {
			b.Fatalf("%v\n%s", err, out)
		}
		worst = max(worst, time.Since(start))
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
