package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// scraper is a server that scrapes a service, and that trimtab asks.
type scraper struct {
	Name, Version string
	// Debian is the program of a Debian package. Module is one that the module
	// proxy has, with its version; Tags are its build tags.
	Debian, Module, Tags string
	// args start it on an address with a directory; its scrapes are in file.
	args func(address, dir, file string) []string
	// Core ones are tried in `make integration`, too.
	Core bool
}

func scrapers() []scraper {
	prometheus := func(address, dir, file string) []string {
		return []string{"--config.file=" + file, "--storage.tsdb.path=" + dir, "--web.listen-address=" + address, "--log.level=warn"}
	}
	return []scraper{
		{Name: "Prometheus 2", Version: "2.42.0 (Debian)", Debian: "prometheus", args: prometheus, Core: true},
		{Name: "Prometheus 3", Version: "3.16.0 (module v0.316.0)", Module: "github.com/prometheus/prometheus/cmd/prometheus@v0.316.0", Tags: "remove_all_sd", args: prometheus},
		{Name: "VictoriaMetrics single node", Version: "1.150.0", Module: "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.150.0", args: func(address, dir, file string) []string {
			return []string{"-promscrape.config=" + file, "-storageDataPath=" + dir, "-httpListenAddr=" + address, "-loggerLevel=WARN"}
		}},
	}
}

// scraped is a row.
type scraped struct {
	scraper
	Sent    sent
	Counted counted
	Missing error
}

// program is where a server is.
func (h *home) program(debian, module string) (string, error) {
	if debian != "" {
		path, err := exec.LookPath(debian)
		if err != nil {
			return "", fmt.Errorf("find %s of Debian: %w", debian, err)
		}
		return path, nil
	}
	// .../cmd/NAME@VERSION becomes NAME@VERSION: another version is another file.
	path := filepath.Join(h.cache, "bin", filepath.Base(module))
	if _, err := os.Stat(path); err != nil {
		return path, fmt.Errorf("find %s, which make interop builds: %w", filepath.Base(module), err)
	}
	return path, nil
}

// goInstall builds a program from the module proxy, unless it is there.
func (h *home) goInstall(ctx context.Context, module, tags string) error {
	path, err := h.program("", module)
	if err == nil {
		return nil
	}
	bin := path + ".new"
	if err := execute(ctx, h.tools, "env", "CGO_ENABLED=0", "GOBIN="+bin, "go", "install", "-trimpath", "-ldflags=-s -w", "-tags="+tags, module); err != nil {
		return err
	}
	made, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil || len(made) != 1 {
		return fmt.Errorf("install %s: %d files were made", module, len(made))
	}
	if err := errors.Join(os.Rename(made[0], path), os.Remove(bin)); err != nil {
		return fmt.Errorf("install %s: %w", module, err)
	}
	return nil
}

func (h *home) installScraper(ctx context.Context, s *scraper) error {
	if s.Debian != "" {
		_, err := h.program(s.Debian, "")
		return err
	}
	return h.goInstall(ctx, s.Module, s.Tags)
}

// scrape runs one: a service that counts exactly rate requests a second, the server
// that scrapes it every 5 s, and trimtab that asks for the rate over half a minute.
func (p *player) scrape(ctx context.Context, s scraper) scraped {
	o := scraped{scraper: s}
	dir, err := os.MkdirTemp("", "trimtab-interop-")
	if err != nil {
		o.Missing = fmt.Errorf("make a directory: %w", err)
		return o
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.Missing = p.scrapes(ctx, dir, &o)
	return o
}

func (p *player) scrapes(ctx context.Context, dir string, o *scraped) error {
	program, err := p.home.program(o.Debian, o.Module)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for scrapes: %w", err)
	}
	service := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(rate * time.Since(began).Seconds())
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "# TYPE http_requests_total counter\nhttp_requests_total{code=\"200\"} %d\nhttp_requests_total{code=\"500\"} %d\n", n-n/100, n/100)
	})}
	go func() { _ = service.Serve(l) }() // ends with Close
	defer func() { _ = service.Close() }()
	at, err := rig.FreeAddresses(1)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "scrape.yml")
	text := fmt.Sprintf("global: {scrape_interval: 5s}\nscrape_configs: [{job_name: web, static_configs: [{targets: [%q]}]}]\n", l.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write scrapes: %w", err)
	}
	server, err := rig.StartAt(ctx, rig.Program{Args: append([]string{program}, o.args(at[0], filepath.Join(dir, "series"), file)...), Dir: dir, Log: filepath.Join(dir, "server.log"), Stop: syscall.SIGTERM}, nil, "http://"+at[0]+"/-/healthy")
	if err != nil {
		return err
	}
	defer server.Close()
	t, err := start(ctx, p.trimtab, dir, fmt.Sprintf("prometheus: {url: %q}", "http://"+at[0]), `slo: {performance: 0.95}
    load: sum(rate(http_requests_total[30s]))
    performance: sum(rate(http_requests_total{code="200"}[30s])) / sum(rate(http_requests_total[30s]))`)
	if err != nil {
		return err
	}
	defer t.Process.Close()
	// The window of 30 s, and what VictoriaMetrics keeps back of the newest, pass first.
	const window = 65 * time.Second
	reading, over := context.WithTimeout(ctx, window+p.during)
	defer over()
	if o.Counted, err = t.watch(reading, window); err != nil {
		return err
	}
	o.Sent.Rate = rate
	return o.Counted.finish(ctx, t)
}
