package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/internal/site"
)

// TestMain lets the test binary be trimtab, for scripts and for the children
// that trimtab starts of itself.
func TestMain(m *testing.M) {
	clustertest.Main()
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(mainCode())
	}
	// Most tests wait for a pipeline more than they compute; -parallel says
	// otherwise.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"trimtab": func() { os.Exit(mainCode()) }})
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs("../../dashboards/rules")
	if err != nil {
		t.Fatal(err)
	}
	setup := func(e *testscript.Env) error {
		e.Setenv("RULES", rules)
		return addresses(t, e)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: setup, Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"waitready": func(ts *testscript.TestScript, _ bool, _ []string) { waitFor(ts, "/-/ready", "") },
		"waitfor":   func(ts *testscript.TestScript, _ bool, args []string) { waitFor(ts, args[0], args[1]) },
	}})
}

// addresses gives a script $WEB and $OTLP to listen on, in its environment and
// in its files.
func addresses(t *testing.T, e *testscript.Env) error {
	given := map[string]string{"WEB": loopback.Address(t), "OTLP": loopback.Address(t)}
	files, err := filepath.Glob(filepath.Join(e.WorkDir, "*.yaml"))
	if err != nil {
		return err
	}
	for name, address := range given {
		e.Setenv(name, address)
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte("$"+name), []byte(address)), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitFor is the script command that returns when TRIMTAB_URL answers 200 at
// path, with the text.
func waitFor(ts *testscript.TestScript, path, text string) {
	deadline := time.Now().Add(5 * time.Minute)
	for {
		var body []byte
		resp, err := http.Get(ts.Getenv("TRIMTAB_URL") + path)
		if err == nil {
			body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(body), text) {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("wait for %s with %q: %v %s", path, text, err, body)
		}
		<-time.After(20 * time.Millisecond) // another process, which needs the processor
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"--help"}, &out, &out); code != exitDone {
		t.Fatal(code, out.String())
	}
	for _, name := range []string{"run", "demo", "status", "explain", "plan", "apply", "diff", "pause", "resume", "restore", "check config", "check rules",
		"collector", "analyzer", "planner", "console", "agent", "init cluster", "doctor", "import slo"} {
		first, _, _ := strings.Cut(name, " ")
		if !strings.Contains(out.String(), "\n  "+first) {
			t.Errorf("--help does not list %s", name)
		}
		var help bytes.Buffer
		if code := Main(t.Context(), append(strings.Fields(name), "--help"), &help, &help); code != exitDone || !strings.Contains(help.String(), "Example:\n  trimtab "+name) {
			t.Errorf("%s --help: code %d, no example:\n%s", name, code, help.String())
		}
	}
}

func TestARestoreOfNothingSaysSo(t *testing.T) {
	dir := t.TempDir()
	for _, why := range []string{"has no journal", "holds no baseline"} {
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"restore", "--storage.path", dir}, &out, &out); code != exitDone || !strings.HasPrefix(out.String(), "nothing to restore: ") || !strings.Contains(out.String(), why) {
			t.Errorf("code %d: %q", code, out.String())
		}
		j, err := hostfs.OpenJournal(site.JournalDir(dir), 0)
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheExampleConfigurationIsGood(t *testing.T) {
	files, err := filepath.Glob("../../deploy/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"check", "config", f}, &out, &out); code != exitDone {
			t.Errorf("%s: %s", f, out.String())
		}
	}
}
