package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/site"
)

// unpack returns the files of a bundle.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "trimtab-debug/")] = string(b)
	}
}

// planted are secrets, each where a real one could be.
var planted = map[string]string{
	"basic auth":       "planted-basic-0001",
	"header":           "planted-header-0002",
	"environment":      "planted-environ-0003",
	"user of address":  "planted-user-0004",
	"password of url":  "planted-pass-0005",
	"bearer in log":    "planted-bearer-0006",
	"url in log":       "planted-urllog-0007",
	"key in log":       "planted-keylog-0008",
	"proxy":            "planted-proxy-0009",
	"file's own":       "planted-file-0010",
	"environment path": "planted-inpath-0011",
}

func TestADebugBundleHasEverythingButSecrets(t *testing.T) {
	s := planted
	t.Setenv("SOME_API_TOKEN", s["environment"])
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+s["environment path"])
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	secret := fmt.Sprintf("prometheus: {url: \"http://127.0.0.1:1\", basic_auth: {username: me, password: %s}, http_headers: {X-Scope: {secrets: [%s]}}, proxy_url: \"http://p:%s@127.0.0.1:2\"}\n",
		s["basic auth"], s["header"], s["proxy"])
	withSecrets, err := config.Parse("secrets.yaml", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Prometheus = withSecrets.Prometheus
	for i := range cfg.Workloads {
		cfg.Workloads[i].Mode = trimtab.Recommend
	}
	recent := &site.RecentLog{}
	logger := slog.New(slog.NewTextHandler(recent, nil))
	running, err := site.Open(t.Context(), cfg, site.Options{Logger: logger, Recent: recent})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	}()
	logger.Info("a line to find", "err", "ask http://x:"+s["url in log"]+"@host: no", "header", "Authorization: Bearer "+s["bearer in log"], "text", "api_key="+s["key in log"])
	o := &operated{t, running, q}
	requests := newSender(t, running.OTLPAddress(), q)
	o.eventually("a plan", func() bool {
		if err := requests.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		return running.View().LastPlan() != nil
	})
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("nats: {url: \"nats://127.0.0.1:4222\", token: "+s["file's own"]+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("http://%s:%s@%s", s["user of address"], s["password of url"], running.WebAddress())
	code, out := say(t, "debug", "bundle", "--url", address, "--output", file, "--config.file", own, "--storage.path", cfg.Storage.Path)
	if code != exitDone || strings.Contains(out, "missing") {
		t.Fatalf("code %d: %s", code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for more than its owner: %v %v", info.Mode(), err)
	}
	files := unpack(t, file)
	for name, want := range map[string]string{
		"version.txt": "trimtab, version", "host.txt": "kernel: Linux", "status.json": `"hungry"`, "plan.json": `"epoch"`, "diff.json": "[",
		"metrics.txt": "trimtab_build_info", "ready.txt": "ready", "goroutines.txt": "goroutine profile", "log.txt": "a line to find",
		"config.yaml": "objective: egalitarian", "config.file.yaml": "token: <secret>", "journal.txt": "actuator", "missing.txt": "",
	} {
		if text, ok := files[name]; !ok || !strings.Contains(text, want) {
			t.Errorf("%s: no %q in %q", name, want, text[:min(len(text), 200)])
		}
	}
	explained := 0
	for name, text := range files {
		if strings.HasPrefix(name, "explain/") && (strings.Contains(name, "hungry") || strings.Contains(name, "modest")) && strings.Contains(text, `"inputs"`) {
			explained++
		}
		for what, s := range planted {
			if strings.Contains(text, s) {
				t.Errorf("%s holds the secret of %s", name, what)
			}
		}
	}
	if explained != 2 {
		t.Errorf("%d workloads are explained", explained)
	}
	for what, s := range planted {
		if strings.Contains(out, s) {
			t.Errorf("the output holds the secret of %s", what)
		}
	}
	// The same over HTTP, where nothing is scrubbed afterwards.
	for _, path := range []string{"/api/v1/config", "/api/v1/debug/log", "/api/v1/debug/goroutines"} {
		resp, err := http.Get("http://" + running.WebAddress() + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", path, resp.Status, err)
		}
		for what, s := range planted {
			if strings.Contains(string(b), s) {
				t.Errorf("%s holds the secret of %s", path, what)
			}
		}
	}
}

func TestABundleOfATrimtabThatIsDownStillHasWhatIsKnownHere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("pool: {cpu: minus}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := say(t, "debug", "bundle", "--url", "http://127.0.0.1:1", "--output", file, "--config.file", bad, "--storage.path", t.TempDir())
	if code != exitDone || !strings.Contains(out, "missing: status.json: ") || !strings.Contains(out, "missing: journal.txt: ") {
		t.Fatalf("code %d: %s", code, out)
	}
	files := unpack(t, file)
	if !strings.Contains(files["config.file.errors.txt"], "bad.yaml:1:") || !strings.Contains(files["host.txt"], "cpus: ") || !strings.Contains(files["missing.txt"], "refused") {
		t.Error(files)
	}
}
