package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// nginxConf makes nginx compress on the fly, with one worker.
const nginxConf = `daemon off;
worker_processes 1;
user %[3]s;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  gzip on;
  gzip_comp_level 6;
  default_type text/html;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  server { listen %[2]s backlog=4096; root %[1]s/www; }
}
`

// nginx serves a text that it compresses for each request. Work is the length
// of the text in KiB.
type nginx struct {
	dir, address string
	process      *rig.Process
	client       *http.Client
}

func (n *nginx) start(ctx context.Context, in *rig.Group, dir string) error {
	var err error
	if n.address, err = rig.FreeAddress(); err != nil {
		return err
	}
	n.dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "www"), 0o755); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	user, err := rig.CurrentUser()
	if err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, n.address, user), 0o600); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	binary, err := rig.Lookup("nginx", "nginx-light")
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "nginx.log")
	n.process, err = rig.Start(rig.Program{Args: []string{binary, "-e", log, "-p", dir, "-c", conf}, Dir: dir, Log: log, Stop: syscall.SIGTERM}, in)
	if err != nil {
		return err
	}
	n.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * inFlight, DisableCompression: true}}
	return n.process.Await(ctx, func(ctx context.Context) error { return n.do(ctx, 1) })
}

// prepare writes a text of that many KiB.
func (n *nginx) prepare(work int) error {
	name := filepath.Join(n.dir, "www", strconv.Itoa(work))
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if err := os.WriteFile(name, prose(work<<10), 0o644); err != nil {
		return fmt.Errorf("write what nginx serves: %w", err)
	}
	return nil
}

// prose is text of n bytes that compresses as pages do, by about four.
func prose(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		b := make([]byte, 2+r.IntN(9))
		for k := range b {
			b[k] = "etaoinshrdlucmfwypvbgkjqxz"[min(r.IntN(26), r.IntN(26))]
		}
		words[i] = string(b)
	}
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(words[min(r.IntN(len(words)), r.IntN(len(words)))])
		out.WriteByte(' ')
	}
	return []byte(out.String()[:n])
}

func (n *nginx) do(ctx context.Context, work int) error {
	if err := n.prepare(work); err != nil {
		return err
	}
	_, err := n.ask(ctx, n.address, work)
	return err
}

// ask sends a request to an address, and returns which instance behind a load balancer answered.
func (n *nginx) ask(ctx context.Context, address string, work int) (instance string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+strconv.Itoa(work), nil)
	if err != nil {
		return "", fmt.Errorf("ask nginx: %w", err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := n.client.Do(req)
	if err != nil {
		return instance, fmt.Errorf("ask nginx: %w", err)
	}
	defer resp.Body.Close()
	instance = resp.Header.Get(instanceHeader)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		return instance, fmt.Errorf("ask nginx: %s, content encoding %q: %w", resp.Status, resp.Header.Get("Content-Encoding"), rig.ErrAnswer)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return instance, fmt.Errorf("read from nginx: %w", err)
	}
	return instance, nil
}

func (n *nginx) close() {
	if n.client != nil {
		n.client.CloseIdleConnections()
	}
	if n.process != nil {
		n.process.Close()
	}
}
